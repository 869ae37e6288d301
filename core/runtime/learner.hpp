// Learner: what a finished job teaches the selector, the generator, the cache and the metrics.
//
// Thread-safety: every method from any thread; a job belongs to one thread. Ownership: owns the job metrics and their
// file; borrows the rest.
#pragma once

#include "runtime/autotuner.hpp"
#include "runtime/job.hpp"
#include "runtime/metrics.hpp"
#include "runtime/runner.hpp"

#include <kiln/device_selector.hpp>
#include <kiln/program_cache.hpp>

#include <string>

namespace kiln {

class Learner {
 public:
  Learner(const Config& config, Log log, DeviceTable& devices, ProgramCache& cache, DeviceSelector& selector,
          Programs& programs, Autotuner& autotuner, JobMetrics& metrics);
  ~Learner();

  // Every run of the outcome. The times of generic programs teach nothing: they are not what will run.
  void record(const Job& job, const Device& device, const Result<AcquiredPrograms>& programs,
              const RunOutcome& outcome);
  // Counts the job, writes the metrics file where it is due, and ends the job's span in a trace.
  RunReport finish(Job& job);
  void finish(const RunReport& report);

  // In Prometheus' text format.
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
