// DeviceInfo of an AMD device, from what its node and its chip tell.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <kiln/device.hpp>

#include <string>

#include "amdgpu_pm4/node_source.hpp"
#include "amdgpu_pm4/winsys/chip.hpp"
#include "amdgpu_pm4/winsys/facts.hpp"

namespace kiln::amdgpu_pm4 {

// "kiln-simulated" in the version's description: Kiln's own simulator; nothing else answers it.
bool is_simulated(const NodeVersion& version);
std::string driver_words(const NodeVersion& version);  // "amdgpu 3.49.0 (AMD GPU)"

// Of an opened device, all but its id and physical_id. `toolchain`: the identity of what compiles for it.
DeviceInfo describe_device(const NodeVersion& version, const NodeFacts& facts, const Chip& chip,
                           const std::string& toolchain);

}  // namespace kiln::amdgpu_pm4
