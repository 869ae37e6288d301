// ObjectMetadata: what a code object's metadata note says of its kernels (MessagePack, as code object versions 4 and 5
// define it).
//
// Thread-safety: a pure function and values. Ownership: owns everything.
// What is missing, of another type or out of range is corrupt, by its key. Keys that are not needed here are ignored.
#pragma once

#include <span>

#include "amdgpu_pm4/code_object/code_object.hpp"

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

// KernelDescriptor: the 64 bytes that say how a kernel's waves start, and every rule for them that can be checked.
//
// Thread-safety: pure functions and values. Ownership: values.
// Field by field as in the AMDHSA ABI, gfx10 to gfx12:
//   0 LDS bytes, 4 scratch bytes of a lane, 8 kernarg bytes, 12 zero, 16 entry from the descriptor's own address (8
//   bytes, signed), 24 zeros, 44 rsrc3, 48 rsrc1, 52 rsrc2, 56 properties (2 bytes), 58 kernarg preload (2), 60 zeros.

inline constexpr std::size_t descriptor_bytes = 64;

struct KernelDescriptor {
  std::uint32_t lds_bytes = 0;
  std::uint32_t scratch_bytes = 0;
  std::uint32_t kernarg_bytes = 0;
  std::int64_t entry = 0;
  std::uint32_t rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;
  std::uint16_t properties = 0;
};

// corrupt: a reserved field is not 0, or a field holds what the target has not, by its name and value.
Result<KernelDescriptor> read_descriptor(std::span<const std::byte, descriptor_bytes> bytes, Target target);

// corrupt, with both values, where the metadata says otherwise than the descriptor.
Status compare(const KernelDescriptor& descriptor, const KernelMetadata& metadata);

bool has_wave32(const KernelDescriptor& descriptor) noexcept;
bool has_dynamic_stack(const KernelDescriptor& descriptor) noexcept;
std::uint32_t user_sgprs(const KernelDescriptor& descriptor) noexcept;
std::vector<UserSgprSlot> user_sgpr_slots(const KernelDescriptor& descriptor);

}  // namespace kiln::amdgpu_pm4
