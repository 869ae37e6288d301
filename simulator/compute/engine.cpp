// ComputeEngine: plans a dispatch, hands its groups to the threads that are there, and stops all at the first fault.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "simulator/compute/dispatch.hpp"
#include "simulator/compute/group.hpp"
#include "simulator/compute/launch.hpp"
#include "simulator/compute/worker_pool.hpp"
#include "simulator/wave/program.hpp"
#include "simulator/wave/semantics_table.hpp"

namespace kiln::simulator {
namespace {

// A dispatch that one thread finishes within this is not worth waking another for.
constexpr std::chrono::microseconds alone{20};

// Raised by the first fault, so that the other threads leave their groups.
constexpr const char* elsewhere = "another wave faulted";

unsigned thread_count(unsigned asked) { return asked != 0 ? asked : std::max(1U, std::thread::hardware_concurrency()); }

}  // namespace

class ComputeEngine::Impl {
 public:
  explicit Impl(const ComputeLimits& limits)
      : limits_(limits), semantics_(limits.vectors), pool_(thread_count(limits.threads)) {
    for (unsigned i = 0; i < pool_.threads(); ++i) runners_.push_back(std::make_unique<GroupRunner>());
  }

  std::optional<Fault> run_dispatch(const DispatchState& state, DeviceMemory& memory);
  void forget_code() { ++forgotten_; }
  void stop(const char* reason) noexcept {
    asked_.store(reason, std::memory_order_release);
    stop_.store(reason, std::memory_order_release);
  }
  const ComputeCounters& counters() const noexcept { return counters_; }

 private:
  Program& program_for(const Launch& launch);
  void work(unsigned number);

  ComputeLimits limits_;
  SemanticsTable semantics_;
  WorkerPool pool_;
  std::vector<std::unique_ptr<GroupRunner>> runners_;
  std::map<std::pair<Generation, WaveSize>, std::unique_ptr<Program>> programs_;
  std::uint64_t forgotten_ = 0;
  ComputeCounters counters_;

  std::atomic<const char*> asked_{nullptr};  // by stop(), until it is called with null
  std::atomic<const char*> stop_{nullptr};   // what waves look at: asked for, or a fault elsewhere
  // of the dispatch that runs
  std::atomic<std::uint64_t> next_group_{0};
  std::uint64_t groups_ = 0;
  std::uint64_t share_ = 1;  // groups that a thread takes at once
  std::mutex fault_mutex_;
  std::optional<Fault> fault_;
};

Program& ComputeEngine::Impl::program_for(const Launch& launch) {
  std::unique_ptr<Program>& program = programs_[{launch.generation, launch.wave}];
  if (program == nullptr) program = std::make_unique<Program>(CodeTarget{launch.generation, launch.wave}, semantics_);
  return *program;
}

void ComputeEngine::Impl::work(unsigned number) {
  GroupRunner& runner = *runners_[number];
  for (;;) {
    const std::uint64_t first = next_group_.fetch_add(share_, std::memory_order_relaxed);
    const std::uint64_t end = std::min(groups_, first + share_);
    if (first >= groups_) return;
    for (std::uint64_t group = first; group < end; ++group) {
      if (stop_.load(std::memory_order_relaxed) == elsewhere) return;
      std::optional<Fault> fault = runner.run(group);
      if (!fault) continue;
      const std::lock_guard lock(fault_mutex_);
      if (!fault_) fault_ = std::move(fault);
      const char* none = nullptr;
      stop_.compare_exchange_strong(none, elsewhere);
      return;
    }
  }
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
  fault_.reset();
  next_group_.store(0, std::memory_order_relaxed);

  unsigned threads = pool_.threads();
  if (launch.scratch) threads = std::min(threads, launch.scratch_slots / launch.waves_per_group());
  threads = static_cast<unsigned>(std::min<std::uint64_t>(threads, groups_));
  for (unsigned i = 0; i < threads; ++i) {
    runners_[i]->begin(launch, program, memory, i, limits_.instructions_per_wave, stop_);
  }

  // The first groups here, to see whether the others are worth waking.
  if (threads > 1) {
    const auto begun = std::chrono::steady_clock::now();
    groups_ = 0;
    share_ = 1;
    while (groups_ < launch.groups() && !fault_ && std::chrono::steady_clock::now() - begun < alone) {
      ++groups_;
      next_group_.store(groups_ - 1, std::memory_order_relaxed);
      work(0);
    }
    next_group_.store(groups_, std::memory_order_relaxed);
    groups_ = launch.groups();
  }
  const std::uint64_t left = groups_ - next_group_.load(std::memory_order_relaxed);
  if (left != 0 && !fault_) {
    constexpr std::uint64_t rounds = 16, most = 64;  // for each thread: small at the end, so that all end together
    share_ = std::clamp<std::uint64_t>(left / (threads * rounds), 1, most);
    pool_.run(threads, [this](unsigned number) { work(number); });
  }
  for (unsigned i = 0; i < threads; ++i) {
    const ComputeCounters& done = runners_[i]->counters();
    counters_.groups += done.groups;
    counters_.waves += done.waves;
    counters_.instructions += done.instructions;
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
