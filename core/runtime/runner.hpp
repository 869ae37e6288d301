// Runner: runs the programs of a job on a device and compares the outputs with the reference.
//
// Thread-safety: every method from any thread; one thread per job. Ownership: borrows everything.
#pragma once

#include "runtime/job.hpp"
#include "runtime/metrics.hpp"
#include "runtime/planner.hpp"
#include "runtime/programs.hpp"
#include "runtime/resource_use.hpp"

#include <kiln/device_selector.hpp>
#include <kiln/executor.hpp>
#include <kiln/measurement.hpp>

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kiln {

// The measurements of the runs of one job.
class RunStatistics {
 public:
  void add(const Measurement& measurement) { runs_.push_back(measurement); }

  bool empty() const noexcept { return runs_.empty(); }
  // Field-wise median; of an even number of runs, the lower middle value. REQUIRES: not empty().
  Measurement median() const;
  // First run of the program in this process; nullopt if it ran before.
  std::optional<Measurement> first() const;
  // Median without the first run; nullopt if there are no others.
  std::optional<Measurement> steady_median() const;
  std::uint64_t wall_min_ns() const;
  std::uint64_t wall_max_ns() const;

 private:
  std::vector<Measurement> runs_;
};

struct FinishedRun {
  Measurement measurement;  // empty if the run failed
  RunConditions conditions;
};

struct RunOutcome {
  Status status;
  // False: the device did not cause the failure, and another device would fail too.
  bool of_device = true;
  std::vector<FinishedRun> runs;  // in order
  RunStatistics statistics;       // valid runs only: correct output, and not faster than the device's roof
};

struct ReplayOutcome {
  Result<Measurement> measurement;
  bool had_device = true;  // false: others had it until the stop, or for most of the time until the deadline
};

class Runner {
 public:
  Runner(const Config& config, TraceSink* trace, Executor& executor, ResourceUse& resources, WorkHistory& history,
         JobMetrics& metrics);

  // Runs all repetitions. Compares the first and last run outside the measured time, with poisoned outputs before.
  // Records measurements and verdict in the report. Fails with the status of `programs` if there are none.
  RunOutcome run(Job& job, const std::shared_ptr<Device>& device, const Result<AcquiredPrograms>& programs);

  // Runs a recording once.
  ReplayOutcome replay(const std::shared_ptr<Recording>& recording, const DeviceInfo& device, Deadline deadline,
                       const std::atomic<bool>* stop);
  // Compares the outputs with the reference and records the verdict in the report.
  Status compare(const RunRequest& request, RunReport& report);

 private:
  struct Attempt {
    Attempt(Result<Measurement> ended, bool held = false) : measurement(std::move(ended)), kept_out(held) {}
    Result<Measurement> measurement;
    bool kept_out;  // earlier jobs kept it from the device until the timeout or the stop
    std::optional<Fence> in_flight;  // what the device may still work on after the timeout or the stop
  };
  // Waits for the deadline or `stop` (may be null), which cancels the job.
  Attempt await(Fence fence, const std::atomic<bool>* stop, Deadline deadline);
  Attempt run_once(const Job& job, const std::shared_ptr<Device>& device, const AcquiredPrograms& programs,
                   bool poisoned, Deadline deadline, std::uint64_t follows_ns);
  static Attempt not_submitted(Status why);
  // Ends the turn, and the use when the work has ended.
  void end(ResourceUse::Use& use, const Attempt& attempt, const std::string& device, Deadline deadline);
  bool has_ended(Fence fence);
  // Ends the uses of work in `left_` that the device has finished.
  void sweep();
  // Whether the device is at work that had a deadline in the past.
  bool is_overdue(const std::string& device);

  const Config& config_;
  TraceSink* const trace_;
  Executor& executor_;
  ResourceUse& resources_;
  WorkHistory& history_;
  JobMetrics& metrics_;
  struct Left {  // work of a job that timed out or was stopped; the device may not have finished it
    Fence fence;
    ResourceUse::Use use;
    std::string device;
    Deadline deadline;
  };
  std::mutex left_mutex_;
  std::list<Left> left_;
};

// The outcome of a job whose programs could not be acquired.
RunOutcome outcome_of(const Result<AcquiredPrograms>& programs);

}  // namespace kiln
