// The text that is handed to the OpenCL C compiler: the prelude, the constants, then the kernel's lines with their own
// numbers under their own file's name. The source's workgroup becomes an attribute of kernels that declare none.
//
// Thread-safety: a pure function. Ownership: values.
#pragma once

#include <kiln/kernel.hpp>

#include <string>
#include <string_view>

namespace kiln::amdgpu_pm4 {

struct OpenClText {
  std::string text;
  bool calls_library = false;  // calls functions that neither the prelude nor the text itself need define
};

// name: of the text in messages, where source.files has none. unsupported: another dialect; an #include, which
// kiln::read_kernel_text() has not resolved.
// invalid_argument: an entry that is no identifier, a constant whose name is none or whose text is not one line.
Result<OpenClText> assemble(const KernelSource& source, std::string_view name);

}  // namespace kiln::amdgpu_pm4
