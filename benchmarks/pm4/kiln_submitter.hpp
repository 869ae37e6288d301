// The plugin amdgpu_pm4 as a Submitter.
#pragma once

#include <memory>

#include "pm4/submitter.hpp"

namespace kiln::bench {

// Throws std::runtime_error where there is no simulated device.
std::unique_ptr<Submitter> make_kiln_submitter();

}  // namespace kiln::bench
