// Learner: records the results of finished jobs in the selector, the generator, the cache and the metrics.
//
// Thread-safety: every method from any thread; one thread per job. Ownership: owns the metrics file; borrows the rest.
#pragma once

#include "runtime/autotuner.hpp"
#include "runtime/job.hpp"
#include "runtime/metrics.hpp"
#include "runtime/runner.hpp"

#include <kiln/device_selector.hpp>
#include <kiln/program_cache.hpp>
#include <kiln/traced_work.hpp>

#include <string>

namespace kiln {

class Learner {
 public:
  Learner(const Config& config, Log log, DeviceTable& devices, ProgramCache& cache, DeviceSelector& selector,
          Programs& programs, Autotuner& autotuner, JobMetrics& metrics);
  ~Learner();

  // Records all runs of the outcome. Run times of generic programs are not learned.
  void record(const Job& job, const Device& device, const Result<AcquiredPrograms>& programs,
              const RunOutcome& outcome);
  // Counts the job, writes the metrics file if due, and ends the job's trace span.
  RunReport finish(Job& job);
  void finish(const RunReport& report, TracedWork& span);

  // Prometheus text format.
  std::string metrics_text() const;

 private:
  void record_run(const Job& job, const DeviceInfo& device, const AcquiredPrograms& programs, const FinishedRun& run);

  DeviceTable& devices_;
  ProgramCache& cache_;
  DeviceSelector& selector_;
  Programs& programs_;
  Autotuner& autotuner_;
  JobMetrics& metrics_;
  MetricsFile file_;
};

}  // namespace kiln
