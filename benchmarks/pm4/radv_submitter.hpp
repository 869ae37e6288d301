// Mesa's Vulkan driver RADV as a Submitter: the peer.
#pragma once

#include <memory>

#include "pm4/submitter.hpp"

namespace kiln::bench {

// Null where Vulkan was not there when this was built, or RADV is not; `absent` then says why.
// Throws std::runtime_error where RADV is there and fails.
std::unique_ptr<Submitter> make_radv_submitter(std::string& absent);

}  // namespace kiln::bench
