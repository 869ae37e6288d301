#include "runtime/warmup.hpp"

#include "cache/driver_scratch.hpp"
#include "cache_admin/selection.hpp"

#include <kiln/clock.hpp>
#include <kiln/host_processor.hpp>
#include <kiln/process_limits.hpp>
#include <kiln/traced_work.hpp>

#include <algorithm>
#include <deque>
#include <limits>
#include <span>
#include <utility>

namespace kiln {

namespace {

// A slot of the process table has marks for a few more: what each thread does is told to other processes.
constexpr unsigned most_building_threads = 16;

// A driver that makes a program's code while it is built writes it to its own cache on a thread of its own. The first
// dispatch finds it there a little later, and would make it again at once.
constexpr std::size_t most_behind_builds = 4;

void build_all_of(ProgramCache& cache, std::span<const ProgramRequest> requests, unsigned threads,
                  const WarmableCache::OnAnswer& on_answer) {
  if (auto* const warmable = dynamic_cast<WarmableCache*>(&cache)) {
    return warmable->get_or_build_all(requests, threads, on_answer);
  }
  for (std::size_t place = 0; place < requests.size(); ++place) {
    const ProgramRequest& request = requests[place];
    if (!on_answer(place, cache.get_or_build(*request.key, *request.source, *request.device))) return;
  }
}

}  // namespace

WarmReport warm_programs(const std::vector<KeptProgram>& programs, Device& device, ProgramCache& cache,
                         const WarmRequest& request, unsigned threads,
                         const std::function<void(const WarmReport&)>& told, std::chrono::nanoseconds patience,
                         TraceSink* trace) {
  WarmReport report;
  report.found = programs.size();
  bool hangs = false;
  const auto stop = [&] { return hangs || (request.stop != nullptr && request.stop->load()); };
  if (stop()) return report;
  std::vector<ProgramRequest> wanted;
  wanted.reserve(programs.size());
  for (const KeptProgram& program : programs) wanted.push_back({&program.key, &program.source, &device, true});
  const auto fail = [&](const KeptProgram& program, const Status& status) {
    ++report.failed;
    if (report.first_failure.ok()) {
      report.first_failure = Status(status).within("program '" + program.key.label + "'");
    }
  };
  std::size_t done = 0;
  const auto finish_one = [&] {
    if (request.progress) request.progress(++done, report.found);
  };
  const auto make_ready = [&](const KeptProgram& program, const Program& linked) {
    TracedWork dispatching(trace, TraceArea::cache, "first dispatch");
    dispatching.figure("program", program.key.label);
    const std::uint64_t begun = now_ns();
    const Status status = dispatch_nothing(device, linked, patience);
    report.ready_ns += now_ns() - begun;
    if (status.ok()) {
      ++report.ready;
    } else {
      hangs = status.code == StatusCode::timeout;
      fail(program, status);
    }
    finish_one();
  };
  std::deque<std::pair<std::size_t, ProgramHandle>> behind;
  const auto catch_up = [&](std::size_t most_behind) {
    for (; behind.size() > most_behind && !hangs; behind.pop_front()) {
      make_ready(programs[behind.front().first], *behind.front().second);
    }
  };
  const std::uint64_t begun = now_ns();
  build_all_of(cache, wanted, threads, [&](std::size_t place, Result<Acquired> acquired) {
    if (!acquired) {
      fail(programs[place], acquired.error());
      finish_one();
    } else {
      ++report.linked;
      report.keys.push_back(programs[place].key.digest);
      if (acquired->tier == Tier::built) {
        ++report.built;
        behind.emplace_back(place, std::move(acquired->program));
        catch_up(most_behind_builds);
      } else {
        make_ready(programs[place], *acquired->program);
      }
    }
    if (told) told(report);
    return !stop();
  });
  if (!stop()) catch_up(0);
  if (told) told(report);
  report.link_ns = now_ns() - begun - report.ready_ns;
  return report;
}

unsigned building_threads() noexcept {
  return std::clamp<unsigned>(host_cores(), 1, most_building_threads);
}

BackgroundBuilder::~BackgroundBuilder() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool BackgroundBuilder::ask(const std::string& name, std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (ending_ || asked_.contains(name)) return false;
  if (!thread_.joinable()) {
    auto thread = start_thread([this] { serve(); });
    if (!thread) return false;  // it may be asked for again
    thread_ = std::move(*thread);
  }
  waiting_.push_back(std::move(work));
  asked_.insert(name);
  changed_.notify_all();
  return true;
}

bool BackgroundBuilder::was_asked(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  return asked_.contains(name);
}

bool BackgroundBuilder::idle() const {
  const std::lock_guard lock(mutex_);
  return waiting_.empty() && !busy_;
}

void BackgroundBuilder::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
    if (ending_) return;
    const std::function<void()> work = std::move(waiting_.front());
    waiting_.pop_front();
    busy_ = true;
    lock.unlock();
    try {
      work();
    } catch (...) {  // out of memory: it is what can be done without
    }
    lock.lock();
    busy_ = false;
  }
}

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
  auto* const warmable = dynamic_cast<WarmableCache*>(&cache);
  if (warmable == nullptr) return {};
  if (tuned.shapes.empty()) return warmable->kept(device, most);
  std::vector<KeptProgram> programs = warmable->kept(device, std::numeric_limits<std::size_t>::max());
  std::stable_partition(programs.begin(), programs.end(), [&](const KeptProgram& program) { return !tuned.supersede(program); });
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
