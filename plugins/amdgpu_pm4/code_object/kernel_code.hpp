// CodeObject: machine code for one AMD target, laid out to be copied into device memory, and what its kernels need to
// be dispatched.
//
// Thread-safety: values. Ownership: owns its bytes and names.
// All numbers come from the object itself: the kernel descriptors verbatim, the arguments from its metadata. Nothing is
// assumed from the target: compilers set some counts (user SGPRs among them) larger than a kernel needs.
#pragma once

#include <kiln/status.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::amdgpu_pm4 {

enum class Target : std::uint8_t {
  invalid = 0,
  gfx1030,
  gfx1100,
  gfx1101,
  gfx1102,
  gfx1103,
  gfx1150,  // from here on: read and described, never dispatched
  gfx1151,
  gfx1152,
  gfx1200,
  gfx1201,
};

// A value that the submitter loads into user SGPRs before the first instruction.
enum class UserSgpr : std::uint8_t {
  invalid = 0,
  private_segment_buffer,  // 4 SGPRs: the scratch's buffer resource (gfx10.3)
  dispatch_pointer,        // 2: not offered
  queue_pointer,           // 2: not offered
  kernarg_pointer,         // 2
  dispatch_id,             // 2: not offered
  flat_scratch_init,       // 2: the 64-bit address of scratch (gfx10.3, whose FLAT_SCRATCH is one)
  private_segment_size,    // 1: scratch bytes of a lane
};

struct UserSgprSlot {
  UserSgpr value = UserSgpr::invalid;
  std::uint32_t first = 0;  // its first SGPR: s0 for the first slot, then without gaps
  std::uint32_t count = 0;  // SGPRs that it takes
};

enum class ArgumentKind : std::uint8_t {
  invalid = 0,
  global_buffer,         // 8 bytes: a device address
  by_value,              // bytes that the caller gives
  local_pointer,         // 4 bytes: where in local memory the bytes lie that the caller asks for
  hidden_none,           // space that nothing reads
  hidden_block_count_x,  // 4 bytes: workgroups
  hidden_block_count_y,
  hidden_block_count_z,
  hidden_group_size_x,  // 2 bytes: lanes of a workgroup
  hidden_group_size_y,
  hidden_group_size_z,
  hidden_remainder_x,  // 2 bytes: lanes of a last, partial workgroup; 0, as there are only whole ones
  hidden_remainder_y,
  hidden_remainder_z,
  hidden_global_offset_x,  // 8 bytes: 0
  hidden_global_offset_y,
  hidden_global_offset_z,
  hidden_grid_dims,         // 2 bytes: 1 to 3
  hidden_dynamic_lds_size,  // 4 bytes: local memory behind the kernel's own
  other,                    // anything else, by its value_kind: not offered
};

struct KernelArgument {
  std::uint32_t offset = 0;  // in the kernarg segment
  std::uint32_t size = 0;
  ArgumentKind kind = ArgumentKind::invalid;
  std::string name;                      // as in the source; empty where the object does not tell
  std::string value_kind;                // the metadata's own word: "hidden_hostcall_buffer"
  std::string type{};                    // as in the source: "float*"; empty where the object has none
  bool read_only = false;                // const, or in constant memory
  std::uint32_t pointee_alignment = 16;  // of local memory
};

struct KernelCode {
  std::string name;
  std::uint64_t entry = 0;                        // of the first instruction in CodeObject::image; a multiple of 256
  std::uint32_t rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;  // verbatim; rsrc2's LDS size is 0: the submitter sets it
  std::uint16_t properties = 0;                   // kernel code properties, verbatim
  std::uint32_t lds_bytes = 0;                    // static
  std::uint32_t scratch_bytes = 0;                // of one lane
  std::uint32_t kernarg_bytes = 0;
  std::uint32_t kernarg_alignment = 0;
  std::uint32_t wave_lanes = 0;  // 32 or 64
  std::uint32_t sgprs = 0;       // that the code uses, as the metadata tells
  std::uint32_t vgprs = 0;
  std::uint32_t user_sgprs = 0;                       // the count in rsrc2; system SGPRs start at this index
  std::vector<UserSgprSlot> user_sgpr_slots;          // the enabled ones, in order of their registers
  std::array<std::uint32_t, 3> required_workgroup{};  // zeros: any
  std::uint32_t max_workgroup_lanes = 0;              // flat
  bool dynamic_stack = false;                         // recursion or calls of unknown depth: not offered
  std::vector<KernelArgument> arguments;              // by offset, hidden ones included
};

// A 64-bit word of the image that holds an address of the image: once it is known where the image lies, the word at
// `offset` becomes that address plus `target`.
struct AddressWord {
  std::uint64_t offset = 0;
  std::uint64_t target = 0;
};

struct CodeObject {
  Target target = Target::invalid;
  std::uint32_t version = 0;     // of the code object format: 4 or 5
  std::vector<std::byte> image;  // to be copied to an address that is a multiple of image_alignment
  std::vector<AddressWord> address_words;
  std::vector<KernelCode> kernels;  // by name, at least one
};

inline constexpr std::uint64_t image_alignment = 4096;

std::string_view to_string(Target target) noexcept;                // "gfx1100"
std::string_view to_string(UserSgpr value) noexcept;               // "kernarg_pointer"
std::string_view to_string(ArgumentKind kind) noexcept;            // "hidden_block_count_x"
Target target_named(std::string_view name) noexcept;               // invalid: no such target
ArgumentKind argument_kind_named(std::string_view name) noexcept;  // other: none of those offered
std::string target_names();                                        // "gfx1030, gfx1100, …", for messages
bool is_dispatched(Target target) noexcept;                        // gfx1030, gfx1100 to gfx1103

// nullptr where the object has no such kernel.
const KernelCode* find_kernel(const CodeObject& object, std::string_view name) noexcept;

}  // namespace kiln::amdgpu_pm4
