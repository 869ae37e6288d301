// Op: one step of a decoded program; and what one build of the vector sources provides.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kiln::simulator {

// Op: one step of a decoded program as waves execute it: a handler already chosen, operands already resolved to
// register rows, scalar indices or constants. One instruction becomes one Op, or a few (VOPD, DPP, SDWA).
//
// Thread-safety and ownership: an Op is written once by the program cache and only read afterwards; what its pointers
// name belongs to the cache and lives until the cache is cleared.
struct Op;
struct Wave;

// What the loop does after an Op. Everything but `go` leaves the block.
enum class Next : std::uint8_t { invalid = 0, go, jump, yield, barrier, end, fault };

using Run = Next (*)(Wave&, const Op&);

enum class SourceKind : std::uint8_t {
  invalid = 0,
  none,
  row,       // a VGPR, by its row in the wave's register file
  scalar,    // a scalar register, by its index
  constant,  // inline constant or literal, spread over 64 words: 32 low ones, 32 high ones
  special    // SCC, VCCZ, EXECZ: known only when it runs
};

struct alignas(64) Op {
  Run run = nullptr;
  std::uintptr_t place[3] = {};  // constant: where its words are; row: its offset in the register file, in bytes
  std::uint16_t reg[3] = {};     // row, scalar index, or the code of what is special
  std::uint16_t vdst = 0;        // row
  std::uint16_t sdst = 0;        // scalar index; for memory the base or the descriptor
  SourceKind kind[3] = {SourceKind::none, SourceKind::none, SourceKind::none};
  std::uint8_t negate = 0;       // bit per source; of packed sources: the low halves
  std::uint8_t absolute = 0;     // bit per source; of packed sources: negation of the high halves
  std::uint8_t select = 0;       // op_sel: bit per source, bit 3 the destination
  std::uint8_t select_high = 0;  // op_sel_hi of packed sources
  std::uint8_t output = 0;       // bits 0-1 omod, bit 2 clamp
  std::uint8_t detail = 0;       // the handler's own
  std::int32_t offset = 0;       // immediate: offset, branch distance, simm16
  std::uint16_t extra = 0;       // the handler's own
  std::uint16_t index = 0;       // instruction within the block
};
static_assert(sizeof(Op) == 64);

// REQUIRES: kind[source] is constant.
[[gnu::always_inline]] inline const std::uint32_t* constant_words(const Op& op, unsigned source) {
  return reinterpret_cast<const std::uint32_t*>(op.place[source]);
}

inline constexpr std::uint8_t output_omod = 3;
inline constexpr std::uint8_t output_clamp = 4;

// Rows before the first VGPR, for what one instruction hands from Op to Op.
inline constexpr unsigned scratch_rows = 4;
// A destination that nobody reads, in the scalar registers: 16 words.
inline constexpr unsigned scalar_sink = 128;

// Modifiers that a handler honours; any other that an instruction carries is refused when it is decoded.
namespace takes {
inline constexpr std::uint8_t nothing = 0;
inline constexpr std::uint8_t float_sources = 1;  // abs, neg
inline constexpr std::uint8_t float_result = 2;   // omod, clamp
inline constexpr std::uint8_t saturation = 4;     // clamp of integers
inline constexpr std::uint8_t packed = 8;         // op_sel_hi, neg_hi
inline constexpr std::uint8_t halves = 16;        // op_sel
inline constexpr std::uint8_t no_time = 32;       // nothing at all is done: no Op is made of it
}  // namespace takes

// What a mnemonic (gfx11's) does.
struct Semantics {
  const char* name = nullptr;
  Run run = nullptr;
  std::uint8_t modifiers = takes::nothing;
  std::uint8_t detail = 0;  // becomes Op::detail
  // The same, faster, for instructions without modifiers whose sources are rows and constants; the second: whose first
  // source is a scalar register. Null: there is none.
  Run quick = nullptr;
  Run quick_scalar = nullptr;
};

struct SemanticsList {
  const Semantics* first = nullptr;
  unsigned count = 0;
};

// LaneMemory: the parts of memory instructions that run through lanes, from the vector build that was chosen.
//
// Thread-safety and ownership: constants.

struct Wave;

struct LaneMemory {
  // Whether the active lanes of one half (some are) read or write `bytes` bytes each, one after the other, on word
  // boundaries; `base` is where lane 0 would. The first: addresses as global and flat instructions have them; the
  // second: DS, from an offset.
  bool (*side_by_side_global)(Wave& wave, const Op& op, unsigned half, std::uint32_t bytes, std::uint64_t& base);
  bool (*side_by_side_local)(Wave& wave, const Op& op, unsigned half, std::uint32_t bytes, std::uint32_t offset,
                             std::uint64_t& base);
  // 32 words to a row, where the mask is set.
  void (*load_row)(std::uint32_t* row, const std::byte* from, std::uint32_t mask);
  // LDS: the offset of each lane, with `offset` added. False: of an active lane not all `bytes` bytes are inside.
  bool (*local_offsets)(Wave& wave, const Op& op, unsigned half, std::uint32_t bytes, std::uint32_t offset,
                        std::uint32_t* out);
  // `count` words a lane, from data + offsets[lane] to as many rows, and back, where the mask is set. REQUIRES: some
  // lane is.
  void (*load_lanes)(std::uint32_t* const* rows, unsigned count, const std::byte* data, const std::uint32_t* offsets,
                     std::uint32_t mask);
  void (*store_lanes)(const std::uint32_t* const* rows, unsigned count, std::byte* data, const std::uint32_t* offsets,
                      std::uint32_t mask);
  // Whether one of `bits` is set in a lane's word, where the mask is set.
  bool (*any_has)(const std::uint32_t* words, std::uint32_t bits, std::uint32_t mask);
};

// VectorChoice: which build of the vector instructions runs. All give the same bits.
//
// Thread-safety and ownership: values.
enum class VectorChoice : std::uint8_t { invalid = 0, best, no_avx512, portable };  // of those that the processor runs

// The tables of vector instructions, one for each encoding family, as one build of this folder's sources provides them.
//
// Thread-safety and ownership: constants.

// What a program needs from one build of the vector sources.
struct VectorBuild {
  SemanticsList vop1, conversions, vop2, vop3, vop3_integer, divide, vopc, vop3p, dot, matrix, mix, cross_lane, mask;
  LaneMemory memory{};
  Run copy_row = nullptr;            // vdst <- source 0, raw: the Ops that instructions are split into
  Run lane_control_begin = nullptr;  // DPP: moves source 0 into row 0 and narrows EXEC
  Run lane_control_end = nullptr;    // restores EXEC
  Run lane_control_merge = nullptr;  // DPP that left EXEC alone: source 0 to the lanes that take part
  Run sub_word_source = nullptr;     // SDWA: selects and extends source 0 into vdst
  Run sub_word_result = nullptr;     // SDWA: puts row 0 into part of vdst
};

namespace portable {
VectorBuild vector_build() noexcept;
}
namespace avx2 {
VectorBuild vector_build() noexcept;
}
namespace avx512 {
VectorBuild vector_build() noexcept;
}

}  // namespace kiln::simulator

namespace kiln::simulator::lane_control {

// How DPP and SDWA stand in the Ops that carry them out.
//
// DPP (lane_control_begin): `extra` DPP16's control; `offset` DPP8's eight selectors of three bits; `detail` row mask
// and, from bit 4, bank mask; `select` the bits below. SDWA: `detail` the selection (bytes 0-3, words 4-5, all 6);
// `extra` of a source: sign extension; of the result: what becomes of the rest. Thread-safety and ownership: constants.

inline constexpr std::uint8_t bound = 1;     // a lane without a source reads zero; else it is off
inline constexpr std::uint8_t inactive = 2;  // reads from lanes that are off, too
inline constexpr std::uint8_t eight = 4;     // DPP8
inline constexpr std::uint8_t whole = 8;     // EXEC stays; the lanes that take part are for lane_control_merge

inline constexpr std::uint16_t pad = 0;
inline constexpr std::uint16_t extend = 1;
inline constexpr std::uint16_t preserve = 2;

}  // namespace kiln::simulator::lane_control
