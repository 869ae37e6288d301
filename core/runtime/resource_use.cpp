#include "runtime/resource_use.hpp"

#include <algorithm>
#include <fstream>
#include <system_error>

namespace kiln {
namespace {

// How long a wait lasts before the stop flag is looked at again.
constexpr std::chrono::milliseconds turn_poll{50};

}  // namespace

ResourceUse::Use ResourceUse::begin(const DeviceInfo& device, const std::string& user) {
  Use use(this, user);
  const std::lock_guard lock(mutex_);
  count_in(use, device);
  return use;
}

ResourceUse::Use ResourceUse::begin(std::string_view resource, const std::string& user) {
  Use use(this, user);
  const std::lock_guard lock(mutex_);
  count_in(use, resource);
  return use;
}

Result<ResourceUse::Use> ResourceUse::begin_turn(const DeviceInfo& device, Deadline deadline,
                                                 const std::atomic<bool>* stop) {
  Use use(this, device.id);
  std::unique_lock lock(mutex_);
  if (!device.shared_resource.empty()) {
    Turns& turns = turns_[device.shared_resource];
    const auto mine = turns.waiting.insert(turns.waiting.end(), {++last_number_, device.id});
    const auto is_my_turn = [&] {
      return turns.waiting.begin() == mine && (turns.runs == 0 || turns.device == device.id);
    };
    const std::uint64_t begun_ns = is_my_turn() ? 0 : now_ns();
    while (!is_my_turn()) {
      const bool stopped = stop != nullptr && stop->load();
      if (stopped || deadline.passed()) {
        const std::string held = device.shared_resource + ", which device " + turns.device + " uses";
        turns.waiting.erase(mine);
        turned_.notify_all();
        if (stopped) return cancelled("stopped on request while device " + device.id + " waited for " + held);
        return timed_out("device " + device.id + " timed out while it waited for " + held);
      }
      const Clock::time_point look = Deadline::after(turn_poll).at;
      turned_.wait_until(lock, stop == nullptr ? deadline.at : std::min(deadline.at, look));
    }
    if (begun_ns != 0) use.waited_ns_ = now_ns() - begun_ns;
    turns.waiting.erase(mine);
    turns.device = device.id;
    ++turns.runs;
    use.turn_ = device.shared_resource;
    turned_.notify_all();  // the next may be of the same device
  }
  count_in(use, device);
  return use;
}

void ResourceUse::count_in(Use& use, const DeviceInfo& device) {
  for (const std::string& name : {device.shared_resource, device.physical_id}) {
    if (!name.empty()) count_in(use, name);
  }
}

void ResourceUse::count_in(Use& use, std::string_view resource_name) {
  const std::string name(resource_name);
  Resource& resource = resources_[name];
  const bool first_of_user = resource.users[use.user_]++ == 0;
  const bool shared = resource.users.size() > 1;
  if (first_of_user && shared) ++resource.overlaps;
  use.held_.push_back({name, resource.overlaps, shared});
}

bool ResourceUse::Use::contended() const {
  const std::lock_guard lock(owner_->mutex_);
  for (const Held& held : held_) {
    if (held.was_shared || owner_->resources_[held.resource].overlaps != held.overlaps) return true;
  }
  return false;
}

void ResourceUse::Use::end() {
  ResourceUse* const owner = std::exchange(owner_, nullptr);
  if (owner == nullptr) return;
  const std::lock_guard lock(owner->mutex_);
  for (const Held& held : held_) {
    Resource& resource = owner->resources_[held.resource];
    const auto at = resource.users.find(user_);
    if (--at->second == 0) resource.users.erase(at);
  }
  owner->end_turn(*this);
}

void ResourceUse::Use::end_turn() {
  if (owner_ == nullptr) return;
  const std::lock_guard lock(owner_->mutex_);
  owner_->end_turn(*this);
}

void ResourceUse::end_turn(Use& use) {
  const std::string turn = std::exchange(use.turn_, {});
  if (!turn.empty() && --turns_[turn].runs == 0) turned_.notify_all();
}

bool share_a_resource(const DeviceInfo& a, const DeviceInfo& b) noexcept {
  return (!a.shared_resource.empty() && a.shared_resource == b.shared_resource) ||
         (!a.physical_id.empty() && a.physical_id == b.physical_id);
}

ThreadTimes ThreadTimes::now(const std::filesystem::path& tasks) {
  ThreadTimes times;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator(tasks, error)) {
    Times one;
    std::ifstream in(task.path() / "schedstat");
    if (in >> one.run_ns >> one.wait_ns) times.threads_.emplace(task.path().filename().string(), one);
  }
  return times;
}

double ThreadTimes::contention_since(const ThreadTimes& before) const {
  double ran = 0, waited = 0;
  for (const auto& [thread, now] : threads_) {
    const auto at = before.threads_.find(thread);
    const Times then = at == before.threads_.end() ? Times{} : at->second;
    if (now.run_ns <= then.run_ns) continue;
    const auto run = static_cast<double>(now.run_ns - then.run_ns);
    const auto wait = static_cast<double>(now.wait_ns - then.wait_ns);
    ran += run;
    waited += run * wait / (run + wait);
  }
  return ran == 0 ? 0 : waited / ran;
}

}  // namespace kiln
