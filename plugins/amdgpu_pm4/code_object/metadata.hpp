// ObjectMetadata: what a code object's metadata note says of its kernels (MessagePack, as code object versions 4 and 5
// define it).
//
// Thread-safety: a pure function and values. Ownership: owns everything.
// What is missing, of another type or out of range is corrupt, by its key. Keys that are not needed here are ignored.
#pragma once

#include <span>

#include "amdgpu_pm4/code_object/kernel_code.hpp"

namespace kiln::amdgpu_pm4 {

struct KernelMetadata {
  std::string name;
  std::string descriptor;  // the symbol of its kernel descriptor
  std::uint32_t lds_bytes = 0;
  std::uint32_t scratch_bytes = 0;
  std::uint32_t kernarg_bytes = 0;
  std::uint32_t kernarg_alignment = 0;
  std::uint32_t wave_lanes = 0;
  std::uint32_t sgprs = 0, vgprs = 0;
  std::uint32_t max_workgroup_lanes = 0;
  std::array<std::uint32_t, 3> required_workgroup{};  // zeros: any
  bool dynamic_stack = false;
  std::vector<KernelArgument> arguments;  // by offset; within kernarg_bytes, none overlaps another
};

struct ObjectMetadata {
  std::uint32_t version = 0;  // of the code object: 4 or 5
  std::string target;         // "amdgcn-amd-amdhsa--gfx1100"
  std::vector<KernelMetadata> kernels;
};

Result<ObjectMetadata> read_metadata(std::span<const std::byte> note);

}  // namespace kiln::amdgpu_pm4
