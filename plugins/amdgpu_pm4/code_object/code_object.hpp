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
#include <span>
#include <string>
#include <string_view>
#include <utility>
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

// Reading a code object, and a kernel's facts as text.

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

// What a dispatch of a kernel needs: whether it can be given here, and the kernarg segment's bytes.
//
// Thread-safety: pure functions. Ownership: spans are borrowed for the call.

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
