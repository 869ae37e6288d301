#include "cache/held_leases.hpp"

#include <thread>
#include <utility>
#include <vector>

namespace kiln {

bool HeldLeases::add(const Digest& program, Held lease) {
  const std::lock_guard lock(mutex_);
  held_[program] = std::move(lease);
  return !std::exchange(is_kept_, true);
}

void HeldLeases::end_at(const Digest& program, Clock::time_point ends) {
  const std::lock_guard lock(mutex_);
  const auto at = held_.find(program);
  if (at != held_.end()) at->second.ends = ends;
}

std::optional<HeldLeases::Held> HeldLeases::take(const Digest& program) {
  const std::lock_guard lock(mutex_);
  const auto at = held_.find(program);
  if (at == held_.end()) return std::nullopt;
  std::optional<Held> taken(std::move(at->second));
  held_.erase(at);
  return taken;
}

std::map<Digest, HeldLeases::Held> HeldLeases::take_all() {
  const std::lock_guard lock(mutex_);
  return std::exchange(held_, {});
}

Status HeldLeases::release(const Held& lease) {
  RemoteLeases* leases = lease.endpoint->leases();
  if (leases == nullptr) return {};
  return leases->release(lease.name, lease.token, {.deadline = Deadline::after(request_patience)});
}

void HeldLeases::release(const Digest& program) {
  if (const auto lease = take(program)) static_cast<void>(release(*lease));
}

void HeldLeases::keep(const std::atomic<bool>& stop) {
  while (!stop) {
    std::vector<std::pair<Digest, Held>> due;
    std::vector<Held> over;
    {
      const std::lock_guard lock(mutex_);
      const auto now = Clock::now();
      for (auto at = held_.begin(); at != held_.end();) {
        if (now >= at->second.ends) {
          over.push_back(std::move(at->second));
          at = held_.erase(at);
          continue;
        }
        if (now - at->second.renewed >= at->second.life / 3) due.emplace_back(*at);
        ++at;
      }
    }
    for (const Held& lease : over) static_cast<void>(release(lease));
    for (auto& [digest, lease] : due) {
      RemoteLeases* leases = lease.endpoint->leases();
      const auto renewed = leases == nullptr
                               ? Result<bool>(false)
                               : leases->renew(lease.name, lease.token, lease.life,
                                               {.deadline = Deadline::after(request_patience), .stop = &stop});
      const std::lock_guard lock(mutex_);
      const auto at = held_.find(digest);
      if (at == held_.end()) continue;
      at->second.renewed = Clock::now();
      if (renewed && !*renewed) held_.erase(at);  // another machine has it by now
    }
    {
      const std::lock_guard lock(mutex_);
      if (held_.empty()) {
        is_kept_ = false;
        return;
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace kiln
