// run_plan: a plan executed straight on a device, without cache or executor: buffers, programs, one dispatch, one wait.
//
// Every buffer stands before a canary (between two where the memory is the host's), outputs, scratch and packed
// constants start as NaN, and inputs must come back as they went in. Thread-safety: any thread; asserts nothing itself.
// Ownership: everything made dies before it returns.
#pragma once

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>

#include <string>
#include <vector>

namespace kiln::conformance {

enum class Memory : std::uint8_t {
  devices,  // buffers that the device allocates, a canary behind the tensor in the same buffer
  hosts,    // wrapped host memory between two canaries; only where DeviceInfo::wraps_host_memory
};

struct PlanOutcome {
  Status status;       // the first thing that failed
  std::string damage;  // what was overwritten that no program may write; empty: nothing
};

// tensors: one per tensor of the plan, of its size; outputs and inouts are replaced by what the device left there.
PlanOutcome run_plan(Device& device, const KernelPlan& plan, std::vector<std::vector<float>>& tensors,
                     Memory memory = Memory::devices);

}  // namespace kiln::conformance
