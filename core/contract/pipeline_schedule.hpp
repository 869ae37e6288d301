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

// Chains in a pipeline: runs of layers that follow one another, as one ChainSpec each.
//
// Thread-safety: pure functions. Ownership: values.

// One submission of a pipeline: a run of a step, or several runs of layers as a chain.
struct ScheduleUnit {
  // A tensor of the chain's request: a storage of the schedule, or an argument of one of its runs (a constant).
  struct Tensor {
    std::size_t storage = StepRun::own_value;
    std::size_t run = 0, argument = 0;  // if storage is own_value
  };

  std::size_t first = 0, count = 1;  // indices into Schedule::runs
  ChainSpec chain;                   // no steps: a single run
  std::vector<Tensor> tensors;       // of the chain, in the order of its operands
  std::uint64_t live_bytes = 0;      // the most that its inner tensors need at one time

  bool is_chain() const { return !chain.steps.empty(); }
};

// leaves[i]: storage i must hold its tensor after the pipeline, or before it: it is no inner tensor of a chain. A
// schedule with loops, or one that writes a storage twice, has no chains.
std::vector<ScheduleUnit> units_of(const Schedule& schedule, const std::vector<bool>& leaves);
// Each run by itself.
std::vector<ScheduleUnit> single_units(const Schedule& schedule);

}  // namespace kiln
