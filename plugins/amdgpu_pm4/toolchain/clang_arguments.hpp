// The arguments that decide which code Clang writes.
//
// Thread-safety: a pure function. Ownership: values.
#pragma once

#include <string>
#include <vector>

#include "amdgpu_pm4/code_object/kernel_code.hpp"

namespace kiln::amdgpu_pm4 {

// Without input and output. REQUIRES: target is not invalid.
std::vector<std::string> clang_arguments(Target target);

}  // namespace kiln::amdgpu_pm4
