// What OpenCL C has and Kiln does not offer, declared so that the compiler refuses each use by its name.
//
// Thread-safety: a pure function. Ownership: values.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace kiln::amdgpu_pm4 {

// Declarations of those of `names` that are not offered; of all of them where `names` is empty.
std::string refusals(const std::set<std::string_view>& names);

}  // namespace kiln::amdgpu_pm4
