// What a dispatch of a kernel needs: whether it can be given here, and the kernarg segment's bytes.
//
// Thread-safety: pure functions. Ownership: spans are borrowed for the call.
#pragma once

#include <span>

#include "amdgpu_pm4/code_object/kernel_code.hpp"

namespace kiln::amdgpu_pm4 {

// unsupported, by name: the target is read but not dispatched, or the kernel needs something that is not offered (a
// queue pointer, a stack of unknown depth, a hidden argument such as hidden_hostcall_buffer). REQUIRES: kernel is one
// of object's.
Status check_dispatch(const CodeObject& object, const KernelCode& kernel);

struct KernargValues {
  std::span<const std::uint64_t> buffers;                // device addresses, one a global_buffer argument, in order
  std::span<const std::span<const std::byte>> by_value;  // one a by_value argument, each of the argument's size
  std::array<std::uint32_t, 3> grid{1, 1, 1};            // workgroups
  std::array<std::uint32_t, 3> workgroup{1, 1, 1};       // lanes
  std::span<const std::uint64_t> local_bytes{};          // one a local_pointer argument
};

// Writes every byte of the segment: arguments, hidden ones that tell the grid among them, and zeros between.
// invalid_argument: other numbers or sizes of values than the kernel has arguments, both named. unsupported: an
// argument that check_dispatch() refuses. REQUIRES: `segment` has kernel.kernarg_bytes bytes.
// Local memory is given out behind the kernel's own, in the order of the arguments.
Status write_kernarg(const KernelCode& kernel, const KernargValues& values, std::span<std::byte> segment);

// Bytes of local memory that a dispatch needs beside the kernel's own for those that its arguments ask for.
std::uint64_t dynamic_local_bytes(const KernelCode& kernel, std::span<const std::uint64_t> local_bytes);

// The order in which a kernel names its bindings: the global_buffer arguments' names, for messages and reports.
std::vector<std::string> buffer_names(const KernelCode& kernel);

}  // namespace kiln::amdgpu_pm4
