// Reading a code object, and a kernel's facts as text.
#pragma once

#include <span>
#include <utility>

#include "amdgpu_pm4/code_object/kernel_code.hpp"

namespace kiln::amdgpu_pm4 {

// read_code_object(): an AMD code object, from a compiler, a file or a cache, checked in every field that is used.
//
// Thread-safety: a pure function. Ownership: the answer owns everything.
// Read: 64-bit ELF for AMD GPUs, code object versions 4 and 5, targets of kernel_code.hpp, relocatable ("clang -c") or
// linked. A kernel that cannot be dispatched here is read all the same: check_dispatch() says why.

// corrupt: it contradicts itself, its size or its format. unsupported: of another version, target or kind than served,
// both sides named. The messages do not name the object: the caller does.
Result<CodeObject> read_code_object(std::span<const std::byte> bytes) noexcept;

// A code object in words.
//
// Thread-safety: pure functions. Ownership: values.

// What there is to know of a kernel, in the order to show it: "VGPRs" and "24", "dispatch" and "offered".
std::vector<std::pair<std::string, std::string>> facts_of(const CodeObject& object, const KernelCode& kernel);

// The whole object, a line a fact, every line ended.
std::string describe(const CodeObject& object);

}  // namespace kiln::amdgpu_pm4
