// A plugin of Kiln as a Submitter.
#pragma once

#include <memory>

#include "pm4/submitter.hpp"

namespace kiln::bench {

// amdgpu_pm4: its first simulated device. vulkan: its first device.
enum class KilnPlugin : std::uint8_t { invalid = 0, amdgpu_pm4, vulkan };

// Throws std::runtime_error where there is no such device.
std::unique_ptr<Submitter> make_kiln_submitter(KilnPlugin plugin);

}  // namespace kiln::bench
