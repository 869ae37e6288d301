// Compiler: what turns kernel source into a code object, as a value that tests can put another one into.
//
// Thread-safety: compile may be called from any thread, also from several at once. Ownership: holds what compile needs.
#pragma once

#include <kiln/kernel.hpp>
#include <kiln/status.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "amdgpu_pm4/code_object/kernel_code.hpp"

namespace kiln::amdgpu_pm4 {

struct Compiler {
  std::string identity;  // of everything that decides which code comes out; not empty
  // invalid_argument holds the compiler's whole log; unavailable: there is no compiler on this machine.
  std::function<Result<std::vector<std::byte>>(const KernelSource& source, Target target)> compile;
};

}  // namespace kiln::amdgpu_pm4
