// The Compiler of a device, from a Toolchain.
//
// Thread-safety: what it answers may be called from any thread. Ownership: the Compiler shares the toolchain.
#pragma once

#include <chrono>
#include <memory>

#include "amdgpu_pm4/device/program/compiler.hpp"
#include "amdgpu_pm4/toolchain/toolchain.hpp"

namespace kiln::amdgpu_pm4 {

// Without a toolchain (its error) every compilation answers unavailable with the reason; programs that were compiled
// before still load, under keys of their own. `patience`: of one compilation.
Compiler compiler_of(Result<std::shared_ptr<Toolchain>> toolchain, std::chrono::seconds patience);

}  // namespace kiln::amdgpu_pm4
