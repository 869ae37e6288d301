// RecordedState: what is recorded once and replayed as one job: a list of requests, or a pipeline.
//
// Thread-safety: none; one thread records or replays. Ownership: owns what it records.
#pragma once

#include "runtime/job.hpp"

#include <kiln/executor.hpp>
#include <kiln/runtime.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace kiln {

struct RecordedState {
  virtual ~RecordedState() = default;

  // Gets all programs on the device and records them. The report of the job gets what every replay has alike.
  virtual Result<std::shared_ptr<Recording>> record(const std::shared_ptr<Device>& chosen, Job& job) = 0;
  // Runs once, and compares what is to be verified. Sets had_device.
  virtual Status replay_once(const ReplayTerms& terms, RunReport& replayed) = 0;

  std::size_t jobs = 0;
  std::shared_ptr<Device> device;
  std::shared_ptr<Recording> recording;
  RunReport report;                // of what every replay has alike
  std::vector<std::string> notes;  // of the plans, with the names of their requests
  bool executor_refuses = false;   // it does not record: it does so for no device
  bool of_layers = false;          // no step is a user's kernel, whose results are not the device's fault
  bool had_device = false;         // of the last replay: its end says something of the device

 protected:
  Result<std::shared_ptr<Recording>> record_with(Executor& executor, std::vector<Submission> submissions);
};

// Selects a device as for the job, and records on it.
Status record_on_a_device(RuntimeState& state, Job& job, RecordedState& made);

// Makes the programs of all requests on the device, and one submission for each. Their sums become the report of the
// job; `each` gets the reports of the requests.
Result<std::vector<Submission>> submissions_of(RuntimeState& state, const std::vector<RunRequest>& requests,
                                               const std::shared_ptr<Device>& device, Job& whole,
                                               std::vector<RunReport>* each = nullptr);

}  // namespace kiln
