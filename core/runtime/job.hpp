// Job: the state of one request in the runtime: request, report, and devices tried so far.
//
// Thread-safety: none; one thread runs a job. Ownership: borrows the request; owns the report.
#pragma once

#include "runtime/metrics.hpp"

#include <kiln/device_selector.hpp>
#include <kiln/run_request.hpp>
#include <kiln/stop_scope.hpp>
#include <kiln/traced_work.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kiln {

bool stop_requested(const std::atomic<bool>* stop) noexcept;

struct Job {
  // Validates the request. An error becomes the status of the report.
  explicit Job(const RunRequest& asked, TraceSink* trace = nullptr);

  const RunRequest& request;
  const ShapeBucket* pipeline = nullptr;  // that of the pipeline whose largest step is the request; null: none
  bool of_layers = false;                 // no user's kernel, whose results are not the device's fault
  bool is_recorded = false;               // many runs may follow on the device: it is no exploration's
  bool generic = false;                   // a program of submissions_of() serves until the job's own is built
  RunReport report;
  TracedWork span;  // trace span of the whole job

  // The device that Router::next() chose last:
  std::string device;
  std::uint64_t chosen_ns = 0;          // start of the choice, in trace time; 0: no trace
  std::vector<std::string> plan_notes;  // copied to the report if this device completes the job
  std::optional<JobMetrics::UnderWay> under_way;

  std::set<std::string> refused;  // devices that cannot run this request
  // Subset of `refused`: devices that failed during this job, perhaps because of another job. Each is tried once more
  // if no other device is left.
  std::set<std::string> failed;
  std::optional<Status> first_failure;
  std::string passed_over;    // devices that were to run it, with the reasons: "opengl:0: …; vulkan:0: …"
  bool asked_to_run = false;  // RunRequest::may_run was called: another device does not ask again

 private:
  const StopScope stop_;
};

inline bool is_written(TensorRole role) noexcept { return role == TensorRole::output || role == TensorRole::inout; }

// invalid_argument: the error names the tensor with the expected and the found value.
Status check_tensors(const RunRequest& request);

// invalid_argument: the request has a DeviceTensor, which a recording alone may have. REQUIRES: check_tensors() is ok.
Status check_on_host(const RunRequest& request);

// Saves the inout tensors of a request so that every run starts with the same contents. Borrows the request.
class InoutSnapshot {
 public:
  explicit InoutSnapshot(const RunRequest& request);
  void restore() const;

 private:
  const RunRequest& request_;
  std::vector<std::pair<std::size_t, std::vector<std::byte>>> saved_;
};

}  // namespace kiln
