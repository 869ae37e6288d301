// Job: one request on its way through the runtime: the request, its report, and what was tried so far.
//
// Thread-safety: none; one thread serves a job. Ownership: borrows the request; owns the report.
#pragma once

#include "base/os/stop_scope.hpp"
#include "runtime/metrics.hpp"

#include <kiln/run_request.hpp>
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
  // Validates the request; what is wrong with it is the report's status.
  explicit Job(const RunRequest& asked, TraceSink* trace = nullptr);

  const RunRequest& request;
  RunReport report;
  TracedWork span;  // of the whole job in a trace

  // Of the device that next() chose last.
  std::string device;
  std::uint64_t chosen_ns = 0;          // when the choice began, as a trace has it; 0: there is no trace
  std::vector<std::string> plan_notes;  // go to the report where that device settles the job
  std::optional<JobMetrics::UnderWay> under_way;

  std::set<std::string> refused;  // devices that cannot serve this request
  // Of those, devices that failed under it: another job may have been the cause. Where no other device can serve, each
  // is tried once more.
  std::set<std::string> failed;
  std::optional<Status> first_failure;

 private:
  const StopScope stop_;
};

// invalid_argument that names the tensor and both sides of the mismatch.
Status check_tensors(const RunRequest& request);

// The contents of a request's inout tensors before its first run, so that every run does the same work. Borrows the
// request.
class InoutSnapshot {
 public:
  explicit InoutSnapshot(const RunRequest& request);
  void restore() const;

 private:
  const RunRequest& request_;
  std::vector<std::pair<std::size_t, std::vector<std::byte>>> saved_;
};

}  // namespace kiln
