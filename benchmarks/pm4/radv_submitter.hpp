// Raw calls of Vulkan as a Submitter: the peer, on RADV beside the plugin amdgpu_pm4, on any driver beside vulkan.
#pragma once

#include <memory>

#include "pm4/submitter.hpp"

namespace kiln::bench {

// Null where Vulkan was not there when this was built, or RADV is not; `absent` then says why.
// Throws std::runtime_error where RADV is there and fails.
std::unique_ptr<Submitter> make_radv_submitter(std::string& absent);

// anew: recorded for each submission. again: recorded once for equal submissions.
enum class Commands : std::uint8_t { invalid = 0, anew, again };

// The first device of the driver that the environment chose. Throws where there is none.
std::unique_ptr<Submitter> make_raw_vulkan_submitter(Commands commands);

}  // namespace kiln::bench
