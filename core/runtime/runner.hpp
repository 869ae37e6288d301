// Runner: runs the programs of a job on a device: submits, waits, compares the outputs.
//
// Thread-safety: every method from any thread; a job belongs to one thread. Ownership: borrows everything.
#pragma once

#include "runtime/job.hpp"
#include "runtime/programs.hpp"
#include "runtime/resource_use.hpp"
#include "runtime/work_history.hpp"

#include <kiln/device_selector.hpp>
#include <kiln/executor.hpp>
#include <kiln/measurement.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace kiln {

// The measurements of one job's runs, and their median field by field.
class RunStatistics {
 public:
  void add(const Measurement& measurement) { runs_.push_back(measurement); }

  bool empty() const noexcept { return runs_.empty(); }
  // REQUIRES: at least one run was added. Of an even number of runs, the lower of the two in the middle: a time that
  // was measured, not a mean of two.
  Measurement median() const;
  // The first run of its program in this process; nullopt where that was earlier.
  std::optional<Measurement> first() const;
  // Of the others, which found everything generated; nullopt where there was none.
  std::optional<Measurement> steady_median() const;
  std::uint64_t wall_min_ns() const;
  std::uint64_t wall_max_ns() const;

 private:
  std::vector<Measurement> runs_;
};

struct FinishedRun {
  Measurement measurement;  // empty where the run failed
  RunConditions conditions;
};

struct RunOutcome {
  Status status;
  // False: the failure says nothing of the device, which did not get to run, or is not its cause. Another device would
  // do no better.
  bool of_device = true;
  std::vector<FinishedRun> runs;  // in order
  RunStatistics statistics;       // of the runs that count: compared, and no faster than the device can be
};

class Runner {
 public:
  Runner(const Config& config, TraceSink* trace, Executor& executor, ResourceUse& resources, WorkHistory& history);

  // All runs of the job. The first and the last are compared, outside the clock, with their outputs poisoned before.
  // The figures and the verdict become the report's. Where there are no programs the outcome is their status.
  RunOutcome run(Job& job, const std::shared_ptr<Device>& device, const Result<AcquiredPrograms>& programs);

  // One run of what the executor recorded.
  Result<Measurement> replay(const std::shared_ptr<Recording>& recording, const DeviceInfo& device, Deadline deadline,
                             const std::atomic<bool>* stop);
  // Compares the outputs with the reference; the verdict becomes the report's.
  Status compare(const RunRequest& request, RunReport& report);

 private:
  // Until the deadline, or until `stop` is set; then the job is cancelled. stop may be null.
  Result<Measurement> await(Fence fence, const std::atomic<bool>* stop, Deadline deadline);
  Result<Measurement> run_once(const Job& job, const std::shared_ptr<Device>& device, const AcquiredPrograms& programs,
                               bool poisoned, Deadline deadline, std::uint64_t follows_ns);

  const Config& config_;
  TraceSink* const trace_;
  Executor& executor_;
  ResourceUse& resources_;
  WorkHistory& history_;
};

// What became of programs that are not run.
RunOutcome outcome_of(const Result<AcquiredPrograms>& programs);

}  // namespace kiln
