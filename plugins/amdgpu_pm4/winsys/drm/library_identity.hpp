// Which build of a shared library is loaded, for the identity of what it serves.
//
// Thread-safety: a pure function of the process. Ownership: values.
#pragma once

#include <string>

namespace kiln::amdgpu_pm4 {

// "libdrm_amdgpu.so.1 build-id 4f…"; without a build-id the file's name alone; "unknown" where no library holds that
// function.
std::string library_identity(const void* function);

}  // namespace kiln::amdgpu_pm4
