// The compute engine: its threads, and the order in which groups and waves run on them.

#include "simulator/compute/engine.hpp"

#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "simulator/compute/group.hpp"
#include "simulator/wave/program.hpp"
#include "simulator/wave/semantics_table.hpp"

namespace kiln::simulator {

// WorkerPool: threads that stay, for work that comes in bursts: between bursts they spin briefly, then sleep.
//
// Thread-safety: run() from one thread at a time. Ownership: owns its threads, and joins them.
class WorkerPool {
 public:
  explicit WorkerPool(unsigned threads);  // the caller's own included
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;
  ~WorkerPool();

  unsigned threads() const noexcept { return static_cast<unsigned>(workers_.size()) + 1; }

  // work(0) on the caller's thread and work(1) … work(threads - 1) on others; returns when all have. REQUIRES: threads
  // is no more than threads(); work does not throw.
  void run(unsigned threads, const std::function<void(unsigned)>& work);

 private:
  void serve(unsigned number);

  std::vector<std::thread> workers_;
  std::atomic<std::uint32_t> burst_{0};  // changes when there is work, or an end
  std::atomic<std::uint32_t> busy_{0};
  std::atomic<bool> ending_{false};
  const std::function<void(unsigned)>* work_ = nullptr;
  unsigned wanted_ = 0;
};

namespace {

constexpr unsigned spins = 2'000;  // some tens of microseconds

// Waits until `value` is no longer `old`.
std::uint32_t changed(std::atomic<std::uint32_t>& value, std::uint32_t old) {
  for (unsigned i = 0; i < spins; ++i) {
    const std::uint32_t now = value.load(std::memory_order_acquire);
    if (now != old) return now;
    _mm_pause();
  }
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

}  // namespace

WorkerPool::WorkerPool(unsigned threads) {
  workers_.reserve(threads);
  try {
    for (unsigned i = 1; i < threads; ++i) workers_.emplace_back([this, i] { serve(i); });
  } catch (const std::system_error&) {  // those that did start serve, and the caller
  }
}

WorkerPool::~WorkerPool() {
  ending_.store(true, std::memory_order_relaxed);
  burst_.fetch_add(1, std::memory_order_release);
  burst_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void WorkerPool::run(unsigned threads, const std::function<void(unsigned)>& work) {
  if (threads > 1) {
    work_ = &work;
    wanted_ = threads;
    busy_.store(static_cast<std::uint32_t>(workers_.size()), std::memory_order_relaxed);
    burst_.fetch_add(1, std::memory_order_release);
    burst_.notify_all();
  }
  work(0);
  if (threads > 1) {
    for (std::uint32_t left = busy_.load(std::memory_order_acquire); left != 0;) left = changed(busy_, left);
  }
}

void WorkerPool::serve(unsigned number) {
  for (std::uint32_t seen = 0;;) {
    seen = changed(burst_, seen);
    if (ending_.load(std::memory_order_relaxed)) return;
    if (number < wanted_) (*work_)(number);
    if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) busy_.notify_all();
  }
}

// ComputeEngine: plans a dispatch, hands its groups to the threads that are there, and stops all at the first fault.

namespace {

// A dispatch that one thread finishes within this is not worth waking another for.
constexpr std::chrono::microseconds alone{20};

// Raised by the first fault, so that the other threads leave their groups.
constexpr const char* elsewhere = "another wave faulted";

unsigned thread_count(const ComputeLimits& limits) {
  if (limits.schedule_seed || limits.check_hazards) return 1;
  return limits.threads != 0 ? limits.threads : std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace

class ComputeEngine::Impl {
 public:
  explicit Impl(const ComputeLimits& limits)
      : limits_(limits),
        semantics_(SemanticsTable::of(limits.vectors)),
        pool_(thread_count(limits)),
        workers_(pool_.threads()) {}

  std::optional<Fault> run_dispatch(const DispatchState& state, DeviceMemory& memory);
  void forget_code() { ++forgotten_; }
  void stop(const char* reason) noexcept {
    asked_.store(reason, std::memory_order_release);
    stop_.store(reason, std::memory_order_release);
  }
  const ComputeCounters& counters() const noexcept { return counters_; }

 private:
  // One thread's groups: one runner each. Those that did not end within a slice wait for their next one.
  struct Worker {
    MemoryPort port;
    ComputeCounters counters;
    GroupContext context;
    std::vector<std::unique_ptr<GroupRunner>> runners;  // of every index its own slot
    std::vector<unsigned> idle;
    std::deque<unsigned> begun;
    std::size_t most = 1;                    // groups at once
    std::uint64_t next_group = 0, last = 0;  // of its share
  };

  Program& program_for(const Launch& launch);
  void begin(Worker& worker, const Launch& launch, Program& program, DeviceMemory& memory);
  std::optional<std::uint64_t> take_group(Worker& worker);
  std::uint64_t drawn(std::uint64_t group);
  enum class Prefer : std::uint8_t { fresh, begun };
  std::optional<unsigned> next_runner(Worker& worker, unsigned number, Prefer prefer);
  // One slice of one group; false: there is none, or a fault.
  bool step(unsigned number, std::uint64_t instructions = GroupRunner::slice, Prefer prefer = Prefer::fresh);
  void report(Fault fault);
  std::optional<Fault> check_progress(const Worker& worker, const GroupRunner& runner);

  ComputeLimits limits_;
  const SemanticsTable& semantics_;
  WorkerPool pool_;
  std::vector<Worker> workers_;
  std::map<std::pair<Generation, WaveSize>, std::unique_ptr<Program>> programs_;
  std::uint64_t forgotten_ = 0;
  ComputeCounters counters_;

  std::atomic<const char*> asked_{nullptr};  // by stop(), until it is called with null
  std::atomic<const char*> stop_{nullptr};   // what waves look at: asked for, or a fault elsewhere
  // of the dispatch that runs
  std::atomic<std::uint64_t> next_group_{0};
  std::uint64_t groups_ = 0;
  std::uint64_t share_ = 1;  // groups that a thread takes at once
  std::uint64_t resident_ = 1;
  unsigned threads_ = 1;
  std::mt19937_64 random_;
  Races races_;
  std::vector<std::uint64_t> window_;      // groups to draw the next one from
  std::atomic<std::int64_t> last_end_{0};  // when a group ended, in ticks of the steady clock
  std::mutex fault_mutex_;
  std::optional<Fault> fault_;
};

Program& ComputeEngine::Impl::program_for(const Launch& launch) {
  std::unique_ptr<Program>& program = programs_[{launch.generation, launch.wave}];
  if (program == nullptr) {
    program = std::make_unique<Program>(CodeTarget{launch.generation, launch.wave}, semantics_,
                                        limits_.check_hazards ? Program::Hazards::watched : Program::Hazards::ignored);
  }
  return *program;
}

void ComputeEngine::Impl::begin(Worker& worker, const Launch& launch, Program& program, DeviceMemory& memory) {
  worker.port.attach(memory);
  worker.counters = {};
  worker.context = {&launch,
                    &program,
                    &worker.port,
                    &stop_,
                    limits_.instructions_per_wave,
                    limits_.schedule_seed ? &random_ : nullptr,
                    &worker.counters,
                    limits_.check_hazards ? &races_ : nullptr,
                    counters_.instructions};
  worker.idle.clear();
  for (std::size_t at = worker.runners.size(); at-- > 0;) worker.idle.push_back(static_cast<unsigned>(at));
  worker.begun.clear();
  worker.next_group = worker.last = 0;
}

std::optional<std::uint64_t> ComputeEngine::Impl::take_group(Worker& worker) {
  if (worker.next_group == worker.last) {
    const std::uint64_t first = next_group_.fetch_add(share_, std::memory_order_relaxed);
    if (first >= groups_) return {};
    worker.next_group = first;
    worker.last = std::min(groups_, first + share_);
  }
  const std::uint64_t group = worker.next_group++;
  return limits_.schedule_seed ? drawn(group) : group;
}

// In the place of `group`, one that is drawn from those about it.
std::uint64_t ComputeEngine::Impl::drawn(std::uint64_t group) {
  constexpr std::uint64_t window = 64;
  if (group == 0) window_.clear();
  // The window holds what was not drawn of the groups below group + window.
  const std::uint64_t below = std::min(groups_, group + window);
  for (std::uint64_t at = group + window_.size(); at < below; ++at) window_.push_back(at);
  std::uint64_t& chosen = window_[random_() % window_.size()];
  const std::uint64_t result = std::exchange(chosen, window_.back());
  window_.pop_back();
  return result;
}

// A group that begins, as long as the device holds more of them; else the one whose last slice is longest ago.
std::optional<unsigned> ComputeEngine::Impl::next_runner(Worker& worker, unsigned number, Prefer prefer) {
  const bool may_begin = worker.begun.size() < worker.most;
  if (limits_.schedule_seed && !worker.begun.empty() && random_() % 2 == 0) prefer = Prefer::begun;
  if (may_begin && (prefer == Prefer::fresh || worker.begun.empty())) {
    if (const std::optional<std::uint64_t> group = take_group(worker)) {
      if (worker.idle.empty()) {
        worker.idle.push_back(static_cast<unsigned>(worker.runners.size()));
        worker.runners.push_back(std::make_unique<GroupRunner>());
      }
      const unsigned runner = worker.idle.back();
      worker.idle.pop_back();
      worker.runners[runner]->start(worker.context, *group, number + runner * threads_);
      return runner;
    }
  }
  if (worker.begun.empty()) return {};
  if (limits_.schedule_seed) std::swap(worker.begun.front(), worker.begun[random_() % worker.begun.size()]);
  const unsigned runner = worker.begun.front();
  worker.begun.pop_front();
  return runner;
}

void ComputeEngine::Impl::report(Fault fault) {
  const std::lock_guard lock(fault_mutex_);
  if (!fault_) fault_ = std::move(fault);
  const char* none = nullptr;
  stop_.compare_exchange_strong(none, elsewhere);
}

std::optional<Fault> ComputeEngine::Impl::check_progress(const Worker& worker, const GroupRunner& runner) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  if (now - std::chrono::steady_clock::duration(last_end_.load(std::memory_order_relaxed)) < limits_.watchdog)
    return {};
  const std::uint64_t taken = std::min(groups_, next_group_.load(std::memory_order_relaxed));
  std::string reason =
      "no workgroup has ended for " + std::to_string(limits_.watchdog.count()) + " ms, the watchdog's time";
  if (taken < groups_ || worker.next_group < worker.last) {
    reason += "; of " + std::to_string(groups_) + " workgroups the device holds " + std::to_string(resident_) +
              " at once, so one may wait for one that has not begun";
  }
  const std::uint64_t place = runner.place();
  return Fault{FaultKind::watchdog, place, worker.context.program->word_at(place), std::move(reason)};
}

bool ComputeEngine::Impl::step(unsigned number, std::uint64_t instructions, Prefer prefer) {
  Worker& worker = workers_[number];
  const std::optional<unsigned> taken = next_runner(worker, number, prefer);
  if (!taken) return false;
  GroupRunner& runner = *worker.runners[*taken];
  std::optional<Fault> fault = runner.run_slice(instructions);
  if (!fault && !runner.ended()) fault = check_progress(worker, runner);
  if (fault) {
    report(std::move(*fault));
    return false;
  }
  if (runner.ended()) {
    worker.idle.push_back(*taken);
    last_end_.store(std::chrono::steady_clock::now().time_since_epoch().count(), std::memory_order_relaxed);
  } else {
    worker.begun.push_back(*taken);
  }
  return true;
}

std::optional<Fault> ComputeEngine::Impl::run_dispatch(const DispatchState& state, DeviceMemory& memory) {
  if (const char* reason = asked_.load(std::memory_order_acquire)) {
    return Fault{FaultKind::planted, state.program, {}, reason};
  }
  Launch launch;
  if (std::optional<Fault> fault = plan_launch(state, launch)) return fault;
  groups_ = launch.groups();
  if (groups_ == 0) return std::nullopt;
  Program& program = program_for(launch);
  program.begin_dispatch(memory, forgotten_);
  if (limits_.check_hazards) {
    races_.start(launch.program, launch.waves_per_group(), groups_ * launch.waves_per_group(), state.overlaps);
  }
  fault_.reset();
  next_group_.store(0, std::memory_order_relaxed);
  if (limits_.schedule_seed) random_.seed(*limits_.schedule_seed);

  resident_ = resident_groups(launch, limits_.compute_units);
  threads_ = static_cast<unsigned>(std::min<std::uint64_t>({pool_.threads(), groups_, resident_}));
  for (unsigned i = 0; i < threads_; ++i) {
    begin(workers_[i], launch, program, memory);
    workers_[i].most = resident_ / threads_ + (i < resident_ % threads_ ? 1 : 0);
  }
  const auto begun = std::chrono::steady_clock::now();
  last_end_.store(begun.time_since_epoch().count(), std::memory_order_relaxed);

  // The first groups here, to see whether the others are worth waking. Not longer: there may be few groups to share.
  constexpr std::uint64_t first_slice = 1'000;
  const std::uint64_t slice = threads_ > 1 ? first_slice : GroupRunner::slice;
  share_ = 1;
  bool more = true;
  while (more && workers_[0].begun.empty() && std::chrono::steady_clock::now() - begun < alone) more = step(0, slice);
  if (more) {
    constexpr std::uint64_t rounds = 16, most = 64;  // for each thread: small at the end, so that all end together
    const std::uint64_t left = groups_ - std::min(groups_, next_group_.load(std::memory_order_relaxed));
    // Groups that are all resident may wait for any other: none is set aside for a thread that is full.
    if (groups_ > resident_) share_ = std::clamp<std::uint64_t>(left / (threads_ * rounds), 1, most);
    pool_.run(threads_, [this](unsigned number) {
      // First what was begun above: left for last, it would be one group more for this thread than for the others. Not
      // with a seed: the time above would then decide on the order.
      Prefer prefer = limits_.schedule_seed ? Prefer::fresh : Prefer::begun;
      while (stop_.load(std::memory_order_relaxed) != elsewhere && step(number, GroupRunner::slice, prefer)) {
        prefer = Prefer::fresh;
      }
    });
  }
  for (unsigned i = 0; i < threads_; ++i) {
    const ComputeCounters& done = workers_[i].counters;
    counters_.groups += done.groups;
    counters_.waves += done.waves;
    counters_.instructions += done.instructions;
    counters_.invocations += done.invocations;
  }
  const char* raised = elsewhere;
  stop_.compare_exchange_strong(raised, asked_.load(std::memory_order_acquire));
  return std::move(fault_);
}

ComputeEngine::ComputeEngine(const ComputeLimits& limits) : impl_(std::make_unique<Impl>(limits)) {}
ComputeEngine::~ComputeEngine() = default;
std::optional<Fault> ComputeEngine::run_dispatch(const DispatchState& state, DeviceMemory& memory) {
  return impl_->run_dispatch(state, memory);
}
void ComputeEngine::forget_code() { impl_->forget_code(); }
void ComputeEngine::stop(const char* reason) noexcept { impl_->stop(reason); }
const ComputeCounters& ComputeEngine::counters() const noexcept { return impl_->counters(); }

}  // namespace kiln::simulator
