// Opcode: what an instruction does, by one name for both generations (gfx11's; an operation that only gfx10.3 has keeps
// its own). A form (e32, e64, DPP, SDWA, VOPD) is the instruction's Format, not another opcode.
//
// opcodes.def is the table: a line an opcode and encoding. Two encodings never share an opcode, except that e64 forms
// belong to the line of their e32 form.
// Thread-safety and ownership: constants.
#pragma once

#include <cstdint>
#include <string_view>

#include "simulator/fault.hpp"

namespace kiln::simulator {

enum class WaveSize : std::uint8_t { invalid = 0, wave32 = 32, wave64 = 64 };

enum class Opcode : std::uint16_t {
  invalid = 0,
#define KILN_OPCODE(name, encoding, gfx11, gfx10_3, gfx10_3_name, dst, src0, src1, src2, flags) name,
#include "simulator/isa/opcodes.def"
  count
};

enum class Encoding : std::uint8_t {  // the table a number is looked up in
  invalid = 0,
  sop2,
  sop1,
  sopc,
  sopk,
  sopp,
  smem,
  vop2,
  vop1,
  vopc,
  vop3,
  vop3p,
  ds,
  flat,
  global,
  scratch,
  mubuf,
  mtbuf,
  dual,
  mimg,
  exp,
  vinterp,
  ldsdir,
  count
};

// What an operand holds: its width, and how an inline constant or a modifier applies to it. Packed types (v2…) are two
// halves in one dword. A mask has one bit a lane: one dword for wave32, two for wave64.
enum class DataType : std::uint8_t {
  none = 0,
  b8,
  u8,
  i8,
  b16,
  u16,
  i16,
  f16,
  bf16,
  b32,
  u32,
  i32,
  f32,
  b64,
  u64,
  i64,
  f64,
  b96,
  b128,
  b160,
  b256,
  b512,
  v2b16,
  v2u16,
  v2i16,
  v2f16,
  v2bf16,
  mask,
  matrix_f32,  // 16 x 16 elements: 8 registers of 32 lanes, 4 of 64
  matrix_f16,  // the same registers, of which each element has a half
  matrix_bf16,
  matrix_i32
};

unsigned dwords_of(DataType type, WaveSize wave) noexcept;  // of registers; what is narrower than a dword takes one
unsigned bits_of(DataType type) noexcept;                   // of one element: 16 for v2f16; 0 for mask and none
bool is_float(DataType type) noexcept;
bool is_packed(DataType type) noexcept;
bool is_matrix(DataType type) noexcept;

namespace flag {  // of an opcode's line, or-ed
inline constexpr std::uint32_t none = 0;
inline constexpr std::uint32_t scc_out = 1u << 0;
inline constexpr std::uint32_t scc_in = 1u << 1;
inline constexpr std::uint32_t vcc_in = 1u << 2;   // and no operand says so (v_div_fmas)
inline constexpr std::uint32_t exec_in = 1u << 3;  // as a value, not as the mask of lanes
inline constexpr std::uint32_t exec_out = 1u << 4;
inline constexpr std::uint32_t m0_in = 1u << 5;
inline constexpr std::uint32_t accumulate = 1u << 6;    // reads its destination too
inline constexpr std::uint32_t carry_out = 1u << 7;     // has a mask for a second destination: sdst
inline constexpr std::uint32_t mask_in = 1u << 8;       // its third source is a mask; VCC in e32
inline constexpr std::uint32_t scalar_dst = 1u << 9;    // a vector instruction that writes an SGPR
inline constexpr std::uint32_t scalar_src0 = 1u << 10;  // v_writelane: the value; not a VGPR
inline constexpr std::uint32_t scalar_rest = 1u << 11;  // lane selectors: sources after the first are no VGPRs
inline constexpr std::uint32_t literal_add = 1u << 12;  // fmaak: the third source is a dword that follows
inline constexpr std::uint32_t literal_mul = 1u << 13;  // fmamk: the second source is a dword that follows
inline constexpr std::uint32_t no_e64 = 1u << 14;
inline constexpr std::uint32_t no_dpp = 1u << 15;
inline constexpr std::uint32_t no_sdwa = 1u << 16;
inline constexpr std::uint32_t branch = 1u << 17;  // may change the program counter
inline constexpr std::uint32_t ends = 1u << 18;    // of the wave
inline constexpr std::uint32_t load = 1u << 19;
inline constexpr std::uint32_t store = 1u << 20;
inline constexpr std::uint32_t atomic = 1u << 21;
inline constexpr std::uint32_t two_addresses = 1u << 22;  // DS: two offsets of 8 bits in place of one of 16
inline constexpr std::uint32_t d16 = 1u << 23;            // 16 bits to or from one half of a VGPR; the other half stays
inline constexpr std::uint32_t high = 1u << 24;           // the high half
inline constexpr std::uint32_t no_operands = 1u << 25;    // every field but the number is zero
inline constexpr std::uint32_t waits = 1u << 26;          // orders or paces: nothing to do where memory is in order
inline constexpr std::uint32_t refused = 1u << 27;        // known by name, and not simulated: decode answers a fault
inline constexpr std::uint32_t format = 1u << 28;         // converts by a buffer format
inline constexpr std::uint32_t matrix = 1u << 29;         // its operands are whole matrices
inline constexpr std::uint32_t image = 1u << 30;          // reaches memory by an image resource
inline constexpr std::uint32_t sampler = 1u << 31;        // and by a sampler
}  // namespace flag

struct OpcodeInfo {
  Opcode opcode = Opcode::invalid;
  Encoding encoding = Encoding::invalid;
  std::int16_t gfx11 = -1;  // number in its encoding; -1: the generation lacks it
  std::int16_t gfx10_3 = -1;
  std::string_view name;          // gfx11's mnemonic without _e32 and _e64; also the enumerator
  std::string_view gfx10_3_name;  // the same where the generations agree
  DataType dst = DataType::none;
  DataType src[3] = {DataType::none, DataType::none, DataType::none};
  std::uint32_t flags = 0;
};

const OpcodeInfo& info(Opcode opcode) noexcept;  // REQUIRES: a valid opcode
std::string_view mnemonic(Opcode opcode, Generation generation) noexcept;

// Opcode::invalid where the generation has no such number. In vop3 also the e64 forms of vop2, vop1 and vopc are found.
Opcode find_opcode(Generation generation, Encoding encoding, unsigned number) noexcept;
// An operation of VOPD, of its first or second half.
enum class Half : std::uint8_t { invalid = 0, first, second };
Opcode find_dual_opcode(Half half, unsigned number) noexcept;

}  // namespace kiln::simulator
