// What a generation of the hardware has: opcodes, limits, and the shape of one device.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "amdgpu_pm4/code_object/code_object.hpp"

namespace kiln::amdgpu_pm4 {

// The header of a PM4 packet: [31:30] type, [29:16] dwords of body less one, [15:8] opcode, [1] shader type, [0]
// predicate. Kiln writes type 3 alone. One count is an exception: a NOP with count 0x3FFF is its header and nothing
// else.
//
// Thread-safety and ownership: constants.

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

// Capabilities: what a generation of command processor and shader hardware offers, apart from the encoders, which know
// only how a packet is laid out.
//
// Thread-safety and ownership: constants.

enum class Generation : std::uint8_t { invalid = 0, gfx10_3, gfx11 };

inline constexpr std::size_t generation_count = 2;

// For tables with a column a generation. REQUIRES: not invalid.
constexpr std::size_t column_of(Generation generation) noexcept { return static_cast<std::size_t>(generation) - 1; }

struct Capabilities {
  Generation generation = Generation::invalid;
  std::bitset<256> opcodes;                   // that a compute ring of this generation may be given
  std::uint32_t shader_engine_registers = 0;  // STATIC_THREAD_MGMT_SE0 to that number, less one
  bool dispatch_interleave = false;           // has COMPUTE_DISPATCH_INTERLEAVE
  bool coherence_start_delay = false;         // has CP_COHER_START_DELAY
  bool scratch_registers = false;             // scratch is addressed by DISPATCH_SCRATCH_BASE; else by user SGPRs
  bool scratch_waves_per_engine = false;      // TMPRING_SIZE.WAVES counts those of one shader engine
  std::uint32_t scratch_granule = 0;          // bytes of a unit of TMPRING_SIZE.WAVESIZE
  std::uint32_t scratch_size_bits = 0;        // of that field
  std::uint32_t waves_per_simd = 0;

  bool knows(Opcode opcode) const noexcept { return opcodes.test(static_cast<std::uint8_t>(opcode)); }
};

// REQUIRES: not invalid.
const Capabilities& capabilities_of(Generation generation) noexcept;

std::string_view to_string(Generation generation) noexcept;  // "gfx11"

// DeviceShape: what the recipe needs to know of a device, and which generation a kernel's target is of.
//
// Thread-safety and ownership: values.
struct DeviceShape {
  Generation generation = Generation::invalid;
  std::uint32_t shader_engines = 0;
  std::uint32_t compute_units = 0;  // of the whole device
  bool fewer_registers = false;     // a gfx11 with as many vector registers as gfx10.3: gfx1102 and gfx1103
};

// Vector registers of one SIMD, of 32 lanes each. A wave is given a multiple of the granule.
struct VectorRegisters {
  std::uint32_t count = 0;
  std::uint32_t granule = 0;
};

constexpr VectorRegisters vector_registers_of(const DeviceShape& shape) noexcept {
  const bool more = shape.generation == Generation::gfx11 && !shape.fewer_registers;
  return more ? VectorRegisters{1536, 24} : VectorRegisters{1024, 16};
}

// invalid: a target whose kernels are never dispatched.
constexpr Generation generation_of(Target target) noexcept {
  switch (target) {
    case Target::gfx1030:
      return Generation::gfx10_3;
    case Target::gfx1100:
    case Target::gfx1101:
    case Target::gfx1102:
    case Target::gfx1103:
      return Generation::gfx11;
    default:
      return Generation::invalid;
  }
}

}  // namespace kiln::amdgpu_pm4
