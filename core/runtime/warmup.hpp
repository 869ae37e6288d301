// Warming: loads or builds programs ahead of jobs and dispatches each once with an empty grid (warm_programs,
// BackgroundWarming).
//
// A built program is dispatched a few builds later, when the driver has written its code to its own cache. Processes
// that warm the same list on an empty cache share the builds.
// Thread-safety: functions from any thread, concurrently with jobs; see the classes. Ownership: borrows its arguments.
#pragma once

#include "base/os/memory_pressure.hpp"
#include "runtime/device_table.hpp"

#include <kiln/config.hpp>
#include <kiln/run_request.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace kiln {

// told: called with the intermediate report after each program and at the end; one call at a time, on a working thread.
// patience: longest first dispatch; a longer one fails with `timeout` and ends the warming. trace: receives the first
// dispatches.
constexpr std::chrono::nanoseconds most_for_first_dispatch = std::chrono::seconds(60);
WarmReport warm_programs(const std::vector<KeptProgram>& programs, Device& device, ProgramCache& cache,
                         const WarmRequest& request, unsigned threads = 1,
                         const std::function<void(const WarmReport&)>& told = {},
                         std::chrono::nanoseconds patience = most_for_first_dispatch, TraceSink* trace = nullptr);

// Number of threads for builds when the machine has no other work.
unsigned building_threads() noexcept;

// A thread that runs named tasks once each, such as builds ahead of jobs.
//
// Thread-safety: every method from any thread. Ownership: owns its thread, which starts with the first task. The
// destructor drops waiting tasks and waits for the running one.
class BackgroundBuilder {
 public:
  BackgroundBuilder() = default;
  BackgroundBuilder(const BackgroundBuilder&) = delete;
  BackgroundBuilder& operator=(const BackgroundBuilder&) = delete;
  ~BackgroundBuilder();

  // false: a task of that name was added before.
  bool ask(const std::string& name, std::function<void()> work);
  bool was_asked(const std::string& name) const;
  bool idle() const;

 private:
  void serve();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  std::set<std::string> asked_;
  bool busy_ = false;
  bool ending_ = false;
  std::thread thread_;
};

// Timing and thresholds of BackgroundWarming.
struct WarmingRules {
  MemorySources memory;
  PressureRules pressure;
  std::chrono::milliseconds grace{250};      // wait for the first job after the devices are open
  std::chrono::milliseconds most_wait{100};  // wait for jobs per program, after the first job has ended
  std::chrono::milliseconds look{250};       // polling interval of memory
};

// Returns whether memory is too short to preload programs. Between the two thresholds, returns `before`.
bool memory_is_short(const MemoryReading& reading, bool before, const PressureRules& rules);

// Tuning results of a device: shapes that have a winner, and the programs of the winners.
struct TunedPrograms {
  std::set<std::pair<std::string, std::string>> shapes;  // operation and shape, as ProgramPurpose has them
  std::set<Digest> winners;

  // Returns whether the program belongs to such a shape but not to its winner.
  bool supersede(const KeptProgram& program) const;
};

// Returns at most `most` programs on disk for the device: largest time savings first, superseded programs last.
std::vector<KeptProgram> kept_programs(ProgramCache& cache, const Device& device, std::size_t most,
                                       const TunedPrograms& tuned);

// Returns the programs that [cache] warm selects.
std::vector<KeptProgram> programs_to_warm(const CacheConfig& config, ProgramCache& cache, const Device& device,
                                          const TunedPrograms& tuned = {});

// Warms the programs of [cache] warm on its own thread, one after another, on every device that [device] prefer opens.
//
// It waits for running jobs: without limit until the first job has ended, then at most 100 ms per program, so that a
// busy service is warmed too. It also waits while memory is short. It uses the cache, so a program that a job requests
// at the same time is not built twice.
// Thread-safety: every method from any thread. Ownership: borrows devices, cache and trace sink, which must outlive it.
// The destructor waits for the current program.
class BackgroundWarming {
 public:
  // Opens and returns the devices to warm. Called on the warming thread, like Tuned.
  using Open = std::function<std::vector<std::shared_ptr<Device>>()>;
  using Tuned = std::function<TunedPrograms(const Device&)>;

  BackgroundWarming(const CacheConfig& config, Open open, ProgramCache& cache, WarmingRules rules = {},
                    Tuned tuned = {}, TraceSink* trace = nullptr);
  ~BackgroundWarming();
  // unavailable: the thread could not be started, and nothing is warmed.
  const Status& started() const noexcept { return started_; }
  BackgroundWarming(const BackgroundWarming&) = delete;
  BackgroundWarming& operator=(const BackgroundWarming&) = delete;

  WarmingState state() const;

  // Marks a running job for its lifetime.
  class Job {
   public:
    explicit Job(BackgroundWarming* warming);  // nullptr: no effect
    ~Job();
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

   private:
    BackgroundWarming* const warming_;
  };

 private:
  void work();
  void warm(Device& device);
  // Waits for jobs and for memory. false: the warming ends.
  bool await_turn();
  bool await_memory(std::unique_lock<std::mutex>& lock);

  const CacheConfig config_;
  const Open open_;
  ProgramCache& cache_;
  const WarmingRules rules_;
  const Tuned tuned_;
  TraceSink* const trace_;
  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::size_t jobs_ = 0;  // running jobs
  bool job_ended_ = false;
  bool memory_short_ = false;
  std::chrono::steady_clock::time_point looked_{};
  WarmingState state_{.running = true};
  Status started_;
  std::thread thread_;  // last member: it uses the others
};

}  // namespace kiln
