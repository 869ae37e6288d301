// Schedule: the runs of a pipeline's steps in order, with loops unrolled and tensors replaced by storages.
//
// Each tensor begins with a storage of its own, number i for tensor i; a swap exchanges those of two tensors.
// Thread-safety: pure functions. Ownership: borrows the pipeline's steps.
#pragma once

#include <kiln/pipeline.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace kiln {

struct StepRun {
  static constexpr std::size_t own_value = std::numeric_limits<std::size_t>::max();

  std::size_t step = 0;               // index into Schedule::steps
  std::vector<std::size_t> storages;  // one per argument; own_value: the step's own
};

struct Schedule {
  std::vector<const PipelineStep*> steps;  // without loops, in order
  std::vector<std::string> names;          // of them: "outer/inner" in a loop
  std::vector<StepRun> runs;
  std::vector<std::size_t> storage_of;  // by tensor, after the last run
  std::vector<bool> written;            // by storage: a step writes it
};

// Access of each argument of a step, in order.
std::vector<Access> accesses_of(const KernelSpec& spec);

// Makes all checks of validate(const Pipeline&).
Result<Schedule> schedule(const Pipeline& pipeline);

}  // namespace kiln
