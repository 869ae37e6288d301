// Wave: the registers of one wave, and what its instructions can reach: LDS, scratch, memory.
//
// Thread-safety: one thread at a time. Ownership: the register file belongs to the wave's group; everything that is
// pointed to outlives the wave. Members are plain arrays and the functions are always inlined, because this header is
// compiled for two instruction sets in one library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "simulator/fault.hpp"
#include "simulator/wave/op.hpp"

namespace kiln::simulator {

class MemoryPort;
class WaveCheck;
struct Block;
struct LaneMemory;

namespace scalar_index {  // in Wave::scalar; below 128 as operands name them
inline constexpr unsigned vcc = 106;
inline constexpr unsigned ttmp = 108;
inline constexpr unsigned m0 = 125;
inline constexpr unsigned exec = 126;
inline constexpr unsigned count = 144;
}  // namespace scalar_index

namespace mode_bit {  // MODE register, by number of the lowest bit
inline constexpr unsigned round32 = 0;
inline constexpr unsigned round16_64 = 2;
inline constexpr unsigned denorm32 = 4;
inline constexpr unsigned denorm16_64 = 6;
inline constexpr unsigned dx10_clamp = 8;
inline constexpr unsigned ieee = 9;
inline constexpr unsigned fp16_ovfl = 23;
}  // namespace mode_bit

struct Scratch {            // of one wave
  std::uint64_t base = 0;   // byte address of the wave's part
  std::uint32_t bytes = 0;  // of the wave's part; 0: none
  std::uint32_t wave_offset = 0;
};

struct LocalMemory {  // LDS of one group
  std::byte* data = nullptr;
  std::uint32_t bytes = 0;
};

struct Wave {
  alignas(64) std::uint32_t scalar[scalar_index::count];
  std::uint32_t* rows = nullptr;  // scratch_rows, then the VGPRs; a row has a word for each lane, 64-byte aligned
  std::uintptr_t base[6] = {};    // by SourceKind: what Op::place counts from
  std::uint32_t row_shift = 5;    // log2 of lanes
  std::uint32_t halves = 1;       // 32 lanes each
  bool scc = false;
  bool flush_in32 = false;  // of denormals, as MODE says
  bool flush_out32 = false;
  bool flush_in16 = false;  // f16 and f64
  bool flush_out16 = false;
  bool ieee = true;
  bool dx10_clamp = true;
  bool nearest16 = true;    // f16 and f64 round to nearest even
  bool split_mode = false;  // csr16 differs from csr32
  std::uint32_t csr32 = 0;  // MXCSR while f32 instructions run: also between instructions
  std::uint32_t csr16 = 0;  // for f16 and f64
  std::uint32_t mode = 0;
  std::uint32_t trap_status = 0;
  std::uint32_t vgpr_count = 0;
  std::uint32_t shared_vgprs = 0;  // behind those: lane n and lane n + 32 have one word, which both rows repeat
  Generation generation = Generation::invalid;
  std::uint32_t saved_exec[2] = {};  // while DPP narrows EXEC
  std::uint64_t pc = 0;
  std::uint64_t instructions = 0;
  std::uint64_t clock = 0;       // of the shaders, when the dispatch began: a wave adds its instructions
  const Block* block = nullptr;  // being run
  MemoryPort* port = nullptr;
  WaveCheck* check = nullptr;               // null: hazards are not looked for
  const LaneMemory* lane_memory = nullptr;  // of the vector build that runs
  LocalMemory lds;
  Scratch scratch;
  std::uint64_t flat_scratch = 0;   // gfx10.3: written by s_setreg
  std::uint64_t border_colors = 0;  // of samplers: a table of four words each
  std::uint32_t hardware_id = 0;    // group's first word of HW_ID
  std::uint32_t lds_allocation = 0;
  std::optional<Fault> fault;

  [[gnu::always_inline]] std::uint32_t* row(unsigned index, unsigned half) noexcept {
    return rows + (static_cast<std::size_t>(index) << row_shift) + half * 32U;
  }
  [[gnu::always_inline]] std::uint32_t exec(unsigned half) const noexcept { return scalar[scalar_index::exec + half]; }
  [[gnu::always_inline]] std::uint64_t exec64() const noexcept {
    return halves == 1 ? scalar[scalar_index::exec]
                       : scalar[scalar_index::exec] | static_cast<std::uint64_t>(scalar[scalar_index::exec + 1]) << 32U;
  }
  [[gnu::always_inline]] std::uint64_t scalar64(unsigned index) const noexcept {
    return scalar[index] | static_cast<std::uint64_t>(scalar[index + 1]) << 32U;
  }
  [[gnu::always_inline]] void set_scalar64(unsigned index, std::uint64_t value) noexcept {
    scalar[index] = static_cast<std::uint32_t>(value);
    scalar[index + 1] = static_cast<std::uint32_t>(value >> 32U);
  }
  // One bit a lane; wave32 leaves the second word as it is.
  [[gnu::always_inline]] void set_mask(unsigned index, unsigned half, std::uint32_t bits) noexcept {
    scalar[index + half] = bits;
  }
  unsigned lanes() const noexcept { return 1U << row_shift; }
  void set_rows(std::uint32_t* begin) noexcept {
    rows = begin;
    base[static_cast<std::size_t>(SourceKind::row)] = reinterpret_cast<std::uintptr_t>(begin);
  }

  // Sets MODE and everything derived from it, MXCSR too.
  void set_mode(std::uint32_t value) noexcept;
};

// What SCC, VCCZ and EXECZ read as.
std::uint32_t special_value(const Wave& wave, unsigned code) noexcept;
// 64-bit read of a source; narrower ones have zeros above. Rows: lane `lane`.
[[gnu::always_inline]] inline std::uint64_t scalar_source(const Wave& wave, const Op& op, unsigned source) noexcept {
  if (op.kind[source] == SourceKind::scalar) return wave.scalar64(op.reg[source]);
  if (op.kind[source] != SourceKind::constant) return special_value(wave, op.reg[source]);
  const std::uint32_t* words = constant_words(op, source);
  return words[0] | static_cast<std::uint64_t>(words[32]) << 32U;
}
[[gnu::always_inline]] inline std::uint32_t scalar_source32(const Wave& wave, const Op& op, unsigned source) noexcept {
  if (op.kind[source] == SourceKind::scalar) return wave.scalar[op.reg[source]];
  return op.kind[source] == SourceKind::constant ? constant_words(op, source)[0] : special_value(wave, op.reg[source]);
}

// Records a fault at the instruction of `op`, and answers Next::fault.
Next refuse(Wave& wave, const Op& op, FaultKind kind, std::string reason);
// Records what memory answered, with the instruction's place added.
Next refuse(Wave& wave, const Op& op, Fault fault);
// A VGPR found at run time that the wave does not have.
Next refuse_register(Wave& wave, const Op& op, std::uint32_t vgpr);

std::string hex(std::uint64_t value);  // 0x…

// Where the shared (LDS) and private (scratch) apertures of flat addressing start; each is 4 GiB.
inline constexpr std::uint64_t shared_aperture = 0x6000'0000'0000'0000;
inline constexpr std::uint64_t private_aperture = 0x6000'0001'0000'0000;

}  // namespace kiln::simulator
