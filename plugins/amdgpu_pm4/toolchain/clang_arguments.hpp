// The arguments that decide which code Clang writes.
//
// Thread-safety: a pure function. Ownership: values.
#pragma once

#include <string>
#include <vector>

#include "amdgpu_pm4/toolchain/device_library.hpp"

namespace kiln::amdgpu_pm4 {

// Without input and output. REQUIRES: target is not invalid.
std::vector<std::string> clang_arguments(Target target);
// Those that link a text with the library as well.
std::vector<std::string> clang_arguments(Target target, const DeviceLibrary& library);

}  // namespace kiln::amdgpu_pm4
