// A code object in words.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <utility>

#include "amdgpu_pm4/code_object/kernel_code.hpp"

namespace kiln::amdgpu_pm4 {

// What there is to know of a kernel, in the order to show it: "VGPRs" and "24", "dispatch" and "offered".
std::vector<std::pair<std::string, std::string>> facts_of(const CodeObject& object, const KernelCode& kernel);

// The whole object, a line a fact, every line ended.
std::string describe(const CodeObject& object);

}  // namespace kiln::amdgpu_pm4
