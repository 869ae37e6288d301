// PipelineChecker: compares the results of a pipeline with what the application expects, with a chain of references in
// double precision, and with its steps run as jobs.
//
// Thread-safety: one thread at a time. Ownership: borrows the request, the schedule and the results.
#pragma once

#include "contract/pipeline_schedule.hpp"
#include "reference/compare.hpp"
#include "runtime/runtime_state.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kiln {

// The results of a pipeline, and what they held before its first run.
using PipelineResults = std::vector<std::pair<std::shared_ptr<HostTensor>, std::vector<std::byte>>>;

inline bool is_result(const PipelineTensor& tensor) {
  return tensor.access == Access::write || tensor.access == Access::read_write;
}

class PipelineChecker {
 public:
  PipelineChecker(const PipelineRequest& request, const Schedule& schedule, const PipelineResults& results)
      : request_(request), pipeline_(request.pipeline), schedule_(schedule), results_(results) {}

  // invalid_argument: a tensor lacks its host tensor, or there is nothing to compare a result with.
  Status check_request() const;
  // The results with `expected` and with the chain of references. REQUIRES: the pipeline has run.
  Status compare(RunReport& report);
  // Runs each step as a job on tensors in host memory, and compares the results with theirs. requests: by step.
  Status check_steps(RuntimeState& state, const Device& device, std::span<const RunRequest> requests,
                     const ReplayTerms& terms, RunReport& report);

 private:
  bool all_have_references() const;
  std::optional<Tolerance> tolerance_of(const PipelineTensor& tensor) const;
  Status compare_with_chain(RunReport& report);
  void compute_chain();
  Status judge(const Result<reference::Comparison>& compared, const std::string& name, const Shape& shape,
               RunReport& report) const;

  const PipelineRequest& request_;
  const Pipeline& pipeline_;
  const Schedule& schedule_;
  const PipelineResults& results_;
  std::vector<std::vector<double>> chain_;  // by storage
  std::vector<double> chain_bounds_;        // by storage
};

}  // namespace kiln
