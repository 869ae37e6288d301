// The simulated render node of a test that runs under `kiln simulate`. Real nodes are left alone.
#pragma once

#include <string>

#include "amdgpu_pm4/winsys/winsys.hpp"

namespace kiln::amdgpu_pm4 {

// Its path; empty where there is none: then the running check warns, or fails where there should be one.
std::string simulated_node();
// Opened. REQUIRES: there is one.
std::unique_ptr<Winsys> open_simulated_node();

}  // namespace kiln::amdgpu_pm4
