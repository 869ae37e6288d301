// The text that is handed to the OpenCL C compiler: the prelude, the constants, then the kernel's lines with their own
// numbers under their own file's name.
//
// Thread-safety: a pure function. Ownership: values.
#pragma once

#include <kiln/kernel.hpp>

#include <string>
#include <string_view>

namespace kiln::amdgpu_pm4 {

// unsupported: another dialect; an #include, for what it brings in would not be part of the program's key.
// invalid_argument: an entry that is no identifier, a constant whose name is none or whose text is not one line.
Result<std::string> assemble(const KernelSource& source, std::string_view name);

}  // namespace kiln::amdgpu_pm4
