// Chains in a pipeline: runs of layers that follow one another, as one ChainSpec each.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include "contract/pipeline_schedule.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kiln {

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
