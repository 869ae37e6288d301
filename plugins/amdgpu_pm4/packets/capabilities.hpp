// Capabilities: what a generation of command processor and shader hardware offers, apart from the encoders, which know
// only how a packet is laid out.
//
// Thread-safety and ownership: constants.
#pragma once

#include <bitset>
#include <cstdint>
#include <string_view>

#include "amdgpu_pm4/packets/opcode.hpp"

namespace kiln::amdgpu_pm4 {

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
  std::uint32_t vgprs_per_simd = 0;           // of 32 lanes, on the largest chip of the generation
  std::uint32_t waves_per_simd = 0;

  bool knows(Opcode opcode) const noexcept { return opcodes.test(static_cast<std::uint8_t>(opcode)); }
};

// REQUIRES: not invalid.
const Capabilities& capabilities_of(Generation generation) noexcept;

std::string_view to_string(Generation generation) noexcept;  // "gfx11"

}  // namespace kiln::amdgpu_pm4
