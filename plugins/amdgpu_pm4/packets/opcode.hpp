// The header of a PM4 packet: [31:30] type, [29:16] dwords of body less one, [15:8] opcode, [1] shader type, [0]
// predicate. Kiln writes type 3 alone. One count is an exception: a NOP with count 0x3FFF is its header and nothing
// else.
//
// Thread-safety and ownership: constants.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kiln::amdgpu_pm4 {

enum class Opcode : std::uint8_t {
  invalid = 0,
  nop = 0x10,
  set_base = 0x11,
  clear_state = 0x12,
  dispatch_direct = 0x15,
  dispatch_indirect = 0x16,
  atomic_mem = 0x1E,
  cond_exec = 0x22,
  context_control = 0x28,
  write_data = 0x37,
  wait_reg_mem = 0x3C,
  indirect_buffer = 0x3F,
  copy_data = 0x40,
  pfp_sync_me = 0x42,
  event_write = 0x46,
  release_mem = 0x49,
  dma_data = 0x50,
  acquire_mem = 0x58,
  rewind = 0x59,
  load_sh_reg_index = 0x63,
  set_config_reg = 0x68,
  set_context_reg = 0x69,
  set_sh_reg = 0x76,
  set_uconfig_reg = 0x79,
  set_sh_reg_index = 0x9B,
};

inline constexpr std::uint32_t largest_count = 0x3FFF;
inline constexpr std::uint32_t filler_dword = 0xFFFF1000;  // NOP without a body: one dword of nothing
inline constexpr std::uint32_t compute_shader_type = 1U << 1;
inline constexpr std::uint32_t predicate_bit = 1U << 0;
inline constexpr std::uint32_t reset_filter_cam_bit = 1U << 2;
inline constexpr std::uint32_t reserved_header_bits = 0xF8;

// REQUIRES: 1 <= body_dwords <= 0x3FFF.
constexpr std::uint32_t packet_header(Opcode opcode, std::size_t body_dwords) noexcept {
  return 3U << 30 | (static_cast<std::uint32_t>(body_dwords) - 1) << 16 | static_cast<std::uint32_t>(opcode) << 8 |
         compute_shader_type;
}

constexpr std::uint32_t packet_type(std::uint32_t header) noexcept { return header >> 30; }
constexpr std::uint32_t packet_count(std::uint32_t header) noexcept { return header >> 16 & largest_count; }
constexpr Opcode packet_opcode(std::uint32_t header) noexcept { return static_cast<Opcode>(header >> 8 & 0xFF); }

}  // namespace kiln::amdgpu_pm4
