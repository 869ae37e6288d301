#include "runtime/warming/background_warming.hpp"

#include "cache/admin/selection.hpp"
#include "runtime/warming/warming.hpp"

#include <kiln/process_limits.hpp>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

namespace kiln {
namespace {

double use_of(const GroupUse& group) {
  return group.limit == 0 ? 0 : static_cast<double>(group.used) / static_cast<double>(group.limit);
}

}  // namespace

bool memory_is_short(const MemoryReading& reading, bool before, const PressureRules& rules) {
  const double stalled = reading.stalled_percent.value_or(0);
  const double used = reading.group ? use_of(*reading.group) : 0;
  if (stalled >= rules.stalled_high || used >= rules.used_high) return true;
  return before && (stalled >= rules.stalled_low || used >= rules.used_low);
}

bool TunedPrograms::supersede(const KeptProgram& program) const {
  return shapes.contains({program.key.purpose.operation, program.key.purpose.shape}) &&
         !winners.contains(program.key.digest);
}

std::vector<KeptProgram> kept_programs(ProgramCache& cache, const Device& device, std::size_t most,
                                       const TunedPrograms& tuned) {
  if (tuned.shapes.empty()) return cache.kept(device, most);
  std::vector<KeptProgram> programs = cache.kept(device, std::numeric_limits<std::size_t>::max());
  std::ranges::stable_partition(programs, [&](const KeptProgram& program) { return !tuned.supersede(program); });
  if (programs.size() > most) programs.erase(programs.begin() + static_cast<std::ptrdiff_t>(most), programs.end());
  return programs;
}

std::vector<KeptProgram> programs_to_warm(const CacheConfig& config, ProgramCache& cache, const Device& device,
                                          const TunedPrograms& tuned) {
  // More than memory takes would only push one another out.
  const auto most =
      static_cast<std::size_t>(std::min<std::uint64_t>(config.max_programs, std::numeric_limits<std::size_t>::max()));
  if (config.warm == "top") {
    return kept_programs(cache, device, std::min<std::size_t>(config.warm_top, most), tuned);
  }
  if (config.warm == "all") return kept_programs(cache, device, most, tuned);
  if (config.warm != "labels") return {};
  std::vector<KeptProgram> programs = kept_programs(cache, device, std::numeric_limits<std::size_t>::max(), tuned);
  std::erase_if(programs, [&](const KeptProgram& program) {
    return std::ranges::none_of(config.warm_labels,
                                [&](const std::string& label) { return is_label_of(label, program.key.label); });
  });
  if (programs.size() > most) programs.resize(most);
  return programs;
}

BackgroundWarming::BackgroundWarming(const CacheConfig& config, Open open, ProgramCache& cache, WarmingRules rules,
                                     Tuned tuned, TraceSink* trace)
    : config_(config),
      open_(std::move(open)),
      cache_(cache),
      rules_(std::move(rules)),
      tuned_(std::move(tuned)),
      trace_(trace) {
  auto thread = start_thread([this] { work(); });
  if (thread) {
    thread_ = std::move(*thread);
  } else {
    started_ = std::move(thread).error();
    state_.running = false;
  }
}

BackgroundWarming::~BackgroundWarming() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

WarmingState BackgroundWarming::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

void BackgroundWarming::work() {
  try {
    for (const std::shared_ptr<Device>& device : open_()) {
      if (stop_) break;
      if (device->info().serializes) warm(*device);
    }
  } catch (const std::exception&) {  // out of memory: warming is what can be done without
  }
  const std::lock_guard lock(mutex_);
  state_.running = false;
}

void BackgroundWarming::warm(Device& device) {
  {
    // Looking through the folder is work too.
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, rules_.grace, [&] { return stop_ || jobs_ != 0 || job_ended_; });
  }
  if (!await_turn()) return;
  const std::vector<KeptProgram> programs =
      programs_to_warm(config_, cache_, device, tuned_ ? tuned_(device) : TunedPrograms());
  WarmingState before;  // by the devices that were warmed already
  {
    const std::lock_guard lock(mutex_);
    state_.of += programs.size();
    before = state_;
  }
  if (!await_turn()) return;
  WarmRequest request;
  request.stop = &stop_;
  const auto tell = [&](const WarmReport& so_far) {
    {
      const std::lock_guard lock(mutex_);
      state_.done = before.done + so_far.ready + so_far.failed;
      state_.linked = before.linked + so_far.linked;
      state_.ready = before.ready + so_far.ready;
      state_.built = before.built + so_far.built;
      state_.failed = before.failed + so_far.failed;
    }
    (void)await_turn();  // where it shall end, the request is stopped too
  };
  // Why one failed is told to the job that asks for it.
  (void)warm_programs(programs, device, cache_, request, 1, tell, most_for_first_dispatch, trace_);
}

bool BackgroundWarming::await_turn() {
  std::unique_lock lock(mutex_);
  const auto free = [&] { return stop_ || jobs_ == 0; };
  while (!free() && !job_ended_) changed_.wait(lock);
  changed_.wait_for(lock, rules_.most_wait, free);
  return await_memory(lock);
}

bool BackgroundWarming::await_memory(std::unique_lock<std::mutex>& lock) {
  while (!stop_) {
    const auto now = std::chrono::steady_clock::now();
    if (looked_ == std::chrono::steady_clock::time_point() || now - looked_ >= rules_.look) {
      looked_ = now;
      memory_short_ = memory_is_short(read_memory(rules_.memory), memory_short_, rules_.pressure);
    }
    if (!memory_short_) return true;
    changed_.wait_for(lock, rules_.look, [&] { return stop_.load(); });
  }
  return false;
}

BackgroundWarming::Job::Job(BackgroundWarming* warming) : warming_(warming) {
  if (warming_ == nullptr) return;
  {
    const std::lock_guard lock(warming_->mutex_);
    ++warming_->jobs_;
  }
  warming_->changed_.notify_all();
}

BackgroundWarming::Job::~Job() {
  if (warming_ == nullptr) return;
  {
    const std::lock_guard lock(warming_->mutex_);
    --warming_->jobs_;
    warming_->job_ended_ = true;
  }
  warming_->changed_.notify_all();
}

}  // namespace kiln
