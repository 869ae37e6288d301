// Instructions, and their decoder.
//
// Instruction: one decoded instruction. Both generations come out alike: operands by gfx11's codes, implicit operands
// made explicit (VCC of an e32 compare, carry or select), offsets sign-extended, absent operands of DataType::none.
//
// Where the operands of each format stand:
//   SOP1 SOP2 SOPC SOPK  dst, src[0], src[1]; SOPK's constant is simm16 (sign-extended), and a compare's or addk's
//                        register is src[0] (s_addk, s_mulk: dst is the same register). s_setreg: src[0]; hwreg is
//                        simm16
//   SOPP                 simm16; branches (s_call_b64 and s_subvector_loop_* too) have offset = bytes from the end of
//   the
//                        instruction to the target
//   SMEM                 dst; src[0] base (2 SGPRs, or 4 for s_buffer_load), src[1] offset register or null; offset
//   VOP1 VOP2 VOP3 VOP3P dst; sdst the carry's mask; src[0..2]. fmamk: src[1] is the literal; fmaak: src[2]. A select's
//                        or a carry-in's mask is src[2]. What accumulates reads dst
//   VOPC                 dst: VCC or the SGPRs of e64; v_cmpx: EXEC
//   VOPD                 as VOP2, and the second half in y; both read before either writes
//   DS                   dst; src[0] address, src[1] data, src[2] second data; offset (16 bits) or, with two_addresses,
//                        offset and offset1 as encoded (8 bits: not yet multiplied by the element)
//   FLAT GLOBAL SCRATCH  dst (an atomic's only with glc); src[0] VGPR address (1 dword with saddr and for scratch, else
//                        2; none without), src[1] data, src[2] saddr SGPRs or none; offset
//   MUBUF MTBUF          dst (as above); src[0] VGPR index and/or offset (none without idxen and offen; index first),
//                        src[1] buffer resource (4 SGPRs), src[2] scalar offset, src[3] data (an atomic's dst is the
//                        same register); offset
//   MIMG                 dst (as above); src[1] image resource (8 SGPRs), src[2] sampler (4) or none,
//                        src[3] data; addresses in `image`
//
// Thread-safety and ownership: values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "simulator/fault.hpp"
#include "simulator/isa/opcode.hpp"

namespace kiln::simulator {

enum class Format : std::uint8_t {
  invalid = 0,
  sop2,
  sop1,
  sopc,
  sopk,
  sopp,
  smem,
  vop1,
  vop2,
  vopc,
  vop3,
  vop3sd,
  vop3p,
  vopd,
  ds,
  flat,
  global,
  scratch,
  mubuf,
  mtbuf,
  mimg
};

namespace operand {                        // codes of Operand::code, as gfx11 encodes them in 9 bits
inline constexpr unsigned sgpr_end = 106;  // 0..105: SGPRs
inline constexpr unsigned vcc_lo = 106;
inline constexpr unsigned vcc_hi = 107;
inline constexpr unsigned ttmp = 108;  // ..123
inline constexpr unsigned null = 124;  // reads as zero; what is written is lost
inline constexpr unsigned m0 = 125;
inline constexpr unsigned exec_lo = 126;
inline constexpr unsigned exec_hi = 127;
inline constexpr unsigned integers = 128;  // 128..192: 0..64; 193..208: -1..-16
inline constexpr unsigned integers_end = 209;
inline constexpr unsigned shared_base = 235;
inline constexpr unsigned shared_limit = 236;
inline constexpr unsigned private_base = 237;
inline constexpr unsigned private_limit = 238;
inline constexpr unsigned floats = 240;  // 0.5 -0.5 1 -1 2 -2 4 -4 1/(2 pi)
inline constexpr unsigned floats_end = 249;
inline constexpr unsigned vccz = 251;
inline constexpr unsigned execz = 252;
inline constexpr unsigned scc = 253;
inline constexpr unsigned literal = 255;  // Instruction::literal
inline constexpr unsigned vgpr = 256;     // 256..511
}  // namespace operand

struct Operand {
  std::uint16_t code = 0;
  DataType type = DataType::none;

  bool present() const noexcept { return type != DataType::none; }
  bool is_vgpr() const noexcept { return present() && code >= operand::vgpr; }
  bool is_literal() const noexcept { return present() && code == operand::literal; }
  // 0..255 for a VGPR, 0..127 for a scalar register. REQUIRES: one of these.
  unsigned index() const noexcept { return code & 0xFFu; }
  bool operator==(const Operand&) const = default;
};

enum class LaneControl : std::uint8_t { none = 0, dpp16, dpp8, sdwa };

enum class Select : std::uint8_t { byte0 = 0, byte1, byte2, byte3, word0, word1, dword };  // SDWA
enum class Unused : std::uint8_t { pad = 0, sign_extend, preserve };                       // SDWA: rest of dst

struct Dpp {                  // moves src[0] across lanes
  std::uint16_t control = 0;  // DPP16: 9 bits, as encoded
  std::uint8_t row_mask = 0xF;
  std::uint8_t bank_mask = 0xF;
  bool bound_control = false;               // a lane without a source reads zero; else it keeps its destination
  bool fetch_inactive = false;              // DPP16 and DPP8: also from lanes that EXEC switches off
  std::array<std::uint8_t, 8> selectors{};  // DPP8: source lane for each of eight
};

struct Sdwa {  // gfx10.3
  Select dst = Select::dword;
  Unused unused = Unused::pad;
  std::array<Select, 2> src{Select::dword, Select::dword};
  std::array<bool, 2> sign_extend{};
};

enum class ImageDim : std::uint8_t {  // as encoded
  one = 0,
  two,
  three,
  cube,
  one_array,
  two_array,
  two_samples,
  two_samples_array
};

struct ImageAccess {  // MIMG
  ImageDim dim = ImageDim::one;
  std::uint8_t mask = 0;       // of components, x first
  std::uint8_t addresses = 0;  // VGPRs
  bool scattered = false;      // the VGPRs of the address are listed one by one, as far as the encoding has room
  bool unnormalised = false;
  bool a16 = false;  // two coordinates in a VGPR
  bool d16 = false;  // two components in a VGPR
  std::array<std::uint8_t, 16> address{};
};

struct SecondHalf {  // of VOPD
  Opcode opcode = Opcode::invalid;
  Operand dst;
  std::array<Operand, 3> src;
};

struct Instruction {
  Opcode opcode = Opcode::invalid;
  Format format = Format::invalid;
  std::uint8_t dwords = 0;  // length, with literals and lane controls
  LaneControl lanes = LaneControl::none;

  Operand dst;
  Operand sdst;
  std::array<Operand, 4> src;
  std::uint32_t literal = 0;
  std::int32_t simm16 = 0;  // SOPK: sign-extended, but for the unsigned compares; SOPP: the field
  std::int32_t offset = 0;
  std::uint8_t offset1 = 0;

  // Modifiers. Bit i belongs to src[i]. For a packed operation, op_sel chooses the half that serves the low result,
  // op_sel_hi the half that serves the high one; neg and neg_hi likewise. Else op_sel chooses the half of a 16-bit
  // source (also what e32 encodes in bit 7 of a VGPR number: the code is the register itself), and its bit 3 the half
  // of dst. v_fma_mix*: op_sel_hi says that a source is f16, op_sel which half.
  std::uint8_t abs = 0;
  std::uint8_t neg = 0;
  std::uint8_t neg_hi = 0;
  std::uint8_t op_sel = 0;
  std::uint8_t op_sel_hi = 0;
  std::uint8_t omod = 0;  // 1: times 2, 2: times 4, 3: by 2
  bool clamp = false;

  bool glc = false;
  bool dlc = false;
  bool slc = false;
  bool tfe = false;  // a load of MUBUF, MTBUF or MIMG: behind the data a dword that says whether memory lacked (not 0)
  bool idxen = false;
  bool offen = false;
  std::uint8_t buffer_format = 0;  // MTBUF: 7 bits, the generation's numbers

  Dpp dpp;
  Sdwa sdwa;
  SecondHalf y;
  ImageAccess image;

  const OpcodeInfo& opcode_info() const noexcept { return info(opcode); }
  bool has(std::uint32_t flags) const noexcept { return (info(opcode).flags & flags) != 0; }
};

// decode: the words at one address as an Instruction, or why they are none.
//
// The decoder guesses nothing: a number without an opcode, a reserved operand code, a set bit that the format does not
// define, a misaligned group of scalar registers, registers beyond the file, and known operations that are not
// simulated (flag::refused) are faults of kind unknown_opcode which name what was met. A word span that ends within the
// instruction is an overrun.
// Thread-safety: any thread. Ownership: borrows the words for the call.

struct CodeTarget {
  Generation generation = Generation::invalid;
  WaveSize wave = WaveSize::invalid;  // VOPD exists for wave32 only; masks are as wide as the wave
};

inline constexpr unsigned longest_instruction = 5;  // dwords to offer, where there are as many

// `address` is that of words[0], for the fault. On a fault `out` is unspecified.
std::optional<Fault> decode(const CodeTarget& target, std::span<const std::uint32_t> words, std::uint64_t address,
                            Instruction& out);

}  // namespace kiln::simulator
