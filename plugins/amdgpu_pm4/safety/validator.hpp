// What a submission may reach, and the search for address ranges in it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <kiln/status.hpp>

#include "amdgpu_pm4/code_object/code_object.hpp"
#include "amdgpu_pm4/packets/capabilities.hpp"
#include "amdgpu_pm4/packets/encoders.hpp"

namespace kiln::amdgpu_pm4 {

// SubmissionScope: what one submission may touch, told by who submits it: the buffers in its list, the programs that
// stand in them, and the command buffers themselves.
//
// Thread-safety: values. Ownership: borrows everything for the time of a check.

// What a buffer's mapping and its owner allow: a set of bits.
inline constexpr std::uint8_t may_read = 1;
inline constexpr std::uint8_t may_write = 2;
inline constexpr std::uint8_t may_execute = 4;
inline constexpr std::uint8_t is_signalled = 8;  // somebody else ends waits on what lies here

struct BufferRange {
  std::uint64_t va = 0;
  std::uint64_t bytes = 0;
  std::uint8_t rights = 0;
};

inline constexpr std::uint32_t no_sgpr = ~0U;

struct ProgramFacts {
  std::uint64_t entry_va = 0;
  std::uint64_t end_va = 0;  // past the last byte of its image
  std::uint32_t wave_lanes = 0;
  std::uint32_t rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;  // rsrc2 without its LDS size
  std::uint32_t lds_bytes = 0;                    // static
  std::uint32_t scratch_bytes = 0;                // of one lane
  std::uint32_t kernarg_bytes = 0;
  std::uint32_t kernarg_sgpr = no_sgpr;  // the first of two
  std::uint32_t scratch_sgpr = no_sgpr;  // gfx10.3: where its scratch's address stands
};

ProgramFacts program_facts(const KernelCode& kernel, std::uint64_t image_va, std::uint64_t image_bytes) noexcept;

struct SubmissionScope {
  DeviceShape shape;
  std::span<const BufferRange> buffers;            // by address, apart from each other
  std::span<const ProgramFacts> programs;          // in any order
  std::span<const CommandBuffer> command_buffers;  // the first is submitted, the others are chained to
};

// RangeFinder: looks addresses up in a submission's buffer list.
//
// Thread-safety: one thread at a time. Ownership: borrows the list. Allocates nothing, but where it refuses.
class RangeFinder {
 public:
  explicit RangeFinder(std::span<const BufferRange> buffers) noexcept : buffers_(buffers) {}

  // invalid_argument: the list is not in order, or its buffers overlap.
  Status check_order() const;

  // invalid_argument unless one buffer holds [va, va + bytes) and has every right asked for. `what` names the use.
  Status check(std::uint64_t va, std::uint64_t bytes, std::uint8_t rights, std::string_view what);

  bool has_rights(std::uint64_t va, std::uint8_t rights);

 private:
  const BufferRange* find(std::uint64_t va);

  std::span<const BufferRange> buffers_;
  const BufferRange* last_ = nullptr;  // found: the next address is often in the same buffer
};

// "0x8000001000"
std::string hex_text(std::uint64_t value);

// The validator: looks through everything that a submission hands to the command processor, as it will be read, before
// it is handed over. It trusts no encoder: it knows the bits alone.
//
// One pass over each command buffer; a submission that is in order costs no allocation.
// Thread-safety: a function without state. Ownership: borrows the scope for the call.

// Starts at the first command buffer and follows its chain. A refusal tells the buffer, the number of the packet in it,
// where it starts, and both sides of the mismatch:
//   "command buffer 0x8000100000, packet 3 (SET_SH_REG) at dword 17: dword 2, COMPUTE_… is 0x…, expected …"
// unsupported: a packet or register that is not on the allow-list. invalid_argument: everything else.
Status validate(const SubmissionScope& scope);

}  // namespace kiln::amdgpu_pm4
