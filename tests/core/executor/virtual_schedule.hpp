// VirtualSchedule: the lanes of a queue served in virtual time: steps that overlap are laid side by side, so that the
// length of a run is exact, whatever machine it is computed on.
//
// Thread-safety: none. Ownership: the schedule keeps its device.
#pragma once

#include "executor/slot_pipeline.hpp"

#include "support/simulated/sim_device.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace kiln::test {

struct VirtualRun {
  std::uint64_t ns = 0;  // from the first submission until the last output was back
  std::uint64_t failed = 0;
  std::uint32_t deepest = 0;               // most slots taken at once
  double usual_depth = 0;                  // mean of the depth in force when jobs were submitted
  std::vector<std::uint64_t> finished_ns;  // by job, likewise from the first submission
};

// The model's stages for jobs of two tensors of `bytes` each; every output is compared.
struct VirtualWorkload {
  support::SimModel model;
  std::uint64_t bytes = 4096;
  std::size_t jobs = 100;
  // Of job i, as a factor on its sizes in bytes; absent: all the same.
  std::function<std::uint64_t(std::size_t)> bytes_of;
  std::function<Completion(std::size_t)> completion_of;  // likewise; absent: ordered
  TraceSink* trace = nullptr;
};

// in_flight slots; adaptive: as many of them as the controller says.
VirtualRun run_virtually(const VirtualWorkload& workload, std::uint32_t in_flight, bool adaptive = false);

}  // namespace kiln::test
