// Readers of the vector formats: VOP1, VOP2, VOPC, VOP3, VOP3P, VINTERP and VOPD.

#include "simulator/isa/decode_frame.hpp"

namespace kiln::simulator::isa {

// VOP2, VOP1, VOPC in their e32 form, with a literal, DPP or SDWA dword after the first.

namespace {

bool is_half(DataType type) { return bits_of(type) == 16 && !is_packed(type); }

// gfx11's e32 forms name the halves of v0..v127: bit 7 of a 16-bit operand's number is the half.
Operand with_half(Frame& frame, Operand operand, unsigned op_sel_bit) {
  if (frame.gfx11() && operand.is_vgpr() && is_half(operand.type) && operand.index() >= 128) {
    operand.code = static_cast<std::uint16_t>(operand.code - 128);
    frame.out.op_sel = static_cast<std::uint8_t>(frame.out.op_sel | 1u << op_sel_bit);
  }
  return operand;
}

Operand first_source(Frame& frame, const OpcodeInfo& line, unsigned code, SdwaFields& sdwa) {
  switch (lane_control(frame, code)) {
    case LaneControl::dpp16:
    case LaneControl::dpp8:
      if (frame.out.opcode == Opcode::v_pk_fmac_f16 && !frame.gfx11()) frame.refuse("takes no DPP");
      for (const DataType type : {line.dst, line.src[0], line.src[1]}) {
        if (type != DataType::mask && dwords_of(type, frame.wave()) > 1) frame.refuse("takes no DPP");
      }
      return with_half(frame, take_dpp(frame, code, line.src[0], SourceModifiers::in_lane_word), 0);
    case LaneControl::sdwa:
      sdwa = take_sdwa(frame, line);
      return sdwa.src0;
    case LaneControl::none:
      break;
  }
  return with_half(frame, frame.source(code, line.src[0]), 0);
}

Operand second_source(Frame& frame, const OpcodeInfo& line, unsigned number, const SdwaFields& sdwa) {
  if (sdwa.scalar_src1) {
    if (number == operand::literal) frame.refuse("SDWA takes no literal");
    return frame.source(number, line.src[1]);
  }
  return with_half(frame, frame.vector(number, line.src[1]), 1);
}

}  // namespace

// 0 op[30:25] vdst[24:17] vsrc1[16:9] src0[8:0]
void decode_vop2(Frame& frame) {
  const std::uint32_t word = frame.word(0);
  const OpcodeInfo& line = frame.find(Encoding::vop2, field(word, 30, 25), Format::vop2);
  Instruction& out = frame.out;
  SdwaFields sdwa;
  out.src[0] = first_source(frame, line, field(word, 8, 0), sdwa);
  const unsigned number = field(word, 16, 9);
  if (out.has(flag::literal_mul)) {
    out.src[1] = frame.source(operand::literal, line.src[1]);
    out.src[2] = with_half(frame, frame.vector(number, line.src[2]), 2);
  } else {
    out.src[1] = second_source(frame, line, number, sdwa);
    if (out.has(flag::literal_add)) out.src[2] = frame.source(operand::literal, line.src[2]);
  }
  out.dst = with_half(frame, frame.vector(field(word, 24, 17), line.dst), 3);
  if (out.has(flag::mask_in)) out.src[2] = frame.mask_register(operand::vcc_lo);
  if (out.has(flag::carry_out)) out.sdst = frame.mask_register(operand::vcc_lo);
}

// 0111111 vdst[24:17] op[16:9] src0[8:0]
void decode_vop1(Frame& frame) {
  const std::uint32_t word = frame.word(0);
  const OpcodeInfo& line = frame.find(Encoding::vop1, field(word, 16, 9), Format::vop1);
  Instruction& out = frame.out;
  if (out.has(flag::no_operands)) {
    frame.require_zero(field(word, 24, 17) | field(word, 8, 0), "an operand");
    return;
  }
  SdwaFields sdwa;
  out.src[0] = first_source(frame, line, field(word, 8, 0), sdwa);
  const unsigned dst = field(word, 24, 17);
  if (out.has(flag::scalar_dst)) {
    out.dst = frame.scalar(dst, line.dst);
    if (!out.src[0].is_vgpr())
      frame.refuse("reads a lane of a VGPR, and operand " + std::to_string(field(word, 8, 0)) + " is none");
  } else {
    out.dst = with_half(frame, frame.vector(dst, line.dst), 3);
  }
  if (needs_vgpr(out.opcode) && !out.src[0].is_vgpr()) frame.refuse("its source is no VGPR");
}

// 0111110 op[24:17] vsrc1[16:9] src0[8:0]
void decode_vopc(Frame& frame) {
  const std::uint32_t word = frame.word(0);
  const OpcodeInfo& line = frame.find(Encoding::vopc, field(word, 24, 17), Format::vopc);
  Instruction& out = frame.out;
  SdwaFields sdwa;
  out.src[0] = first_source(frame, line, field(word, 8, 0), sdwa);
  out.src[1] = second_source(frame, line, field(word, 16, 9), sdwa);
  const unsigned usual = out.has(flag::exec_out) ? operand::exec_lo : operand::vcc_lo;
  out.dst = sdwa.has_destination ? frame.scalar(sdwa.destination, DataType::mask) : frame.mask_register(usual);
}

// VOP3 (also the e64 forms of VOP2, VOP1, VOPC), VOP3SD and VOP3P: two dwords, then a literal or, on gfx11, DPP.
// 110101 op[25:16] clamp15 op_sel[14:11] abs[10:8] vdst[7:0]; dword 1: neg[31:29] omod[28:27] src2[26:18] src1[17:9]
// src0[8:0]. VOP3SD has sdst in [14:8].

namespace {

bool is_select(Opcode opcode) { return opcode == Opcode::v_cndmask_b32 || opcode == Opcode::v_cndmask_b16; }

// Float sources take abs and neg, and so do the 32-bit values that a select chooses from.
bool takes_modifiers(const OpcodeInfo& line, unsigned source) {
  if (is_select(line.opcode)) return source < 2 && line.opcode == Opcode::v_cndmask_b32;
  return is_float(line.src[source]) && !is_packed(line.src[source]);
}

// gfx10.3 has halves in what is VOP3 only.
bool takes_half(const Frame& frame, const OpcodeInfo& line, unsigned operand) {
  if (!frame.gfx11() && line.encoding != Encoding::vop3) return false;
  return is_half(operand < 3 ? line.src[operand] : line.dst);
}

bool dots_halves(Opcode opcode) { return opcode == Opcode::v_dot2_f16_f16 || opcode == Opcode::v_dot2_bf16_bf16; }

// Integer results that may saturate.
bool takes_clamp(const OpcodeInfo& line) {
  if (line.encoding == Encoding::vopc) return is_float(line.src[0]) && is_float(line.src[1]);
  if (dots_halves(line.opcode)) return false;
  if (is_float(line.dst) || is_select(line.opcode)) return !is_select(line.opcode);
  for (const DataType type : line.src) {
    if (is_float(type)) return true;  // conversions
  }
  const std::string_view name = line.name;
  const auto starts = [name](std::string_view prefix) { return name.substr(0, prefix.size()) == prefix; };
  return starts("v_add_nc_") || starts("v_add_co_") || starts("v_sub") || starts("v_mad_") || starts("v_mul_i32_i24") ||
         starts("v_mul_u32_u24") || starts("v_sad_") || starts("v_msad_") || starts("v_mqsad_") || starts("v_qsad_") ||
         starts("v_dot") || starts("v_pk_add_") || starts("v_pk_sub_") || starts("v_pk_mad_");
}

void take_modifiers(Frame& frame, const OpcodeInfo& line, std::uint32_t first, std::uint32_t second) {
  Instruction& out = frame.out;
  out.clamp = bit(first, 15);
  out.omod = static_cast<std::uint8_t>(field(second, 28, 27));
  out.neg = static_cast<std::uint8_t>(field(second, 31, 29));
  if (out.clamp && !takes_clamp(line)) frame.refuse("takes no clamp");
  if (out.omod != 0 && (!is_float(line.dst) || is_packed(line.dst) || dots_halves(line.opcode)))
    frame.refuse("takes no output modifier");
  if (!out.has(flag::carry_out)) {
    out.abs = static_cast<std::uint8_t>(field(first, 10, 8));
    out.op_sel = static_cast<std::uint8_t>(field(first, 14, 11));
  }
  const bool permutes = out.opcode == Opcode::v_permlane16_b32 || out.opcode == Opcode::v_permlanex16_b32;
  if (permutes) {  // LLVM 15 sets all bits of a modifier for "fetch inactive"
    out.neg = out.abs = 0;
    out.op_sel &= 7U;
  }
  for (unsigned source = 0; source < 3; ++source) {
    if ((out.neg >> source & 1u) != 0 && !takes_modifiers(line, source)) frame.refuse("takes no negation", 1);
    if ((out.abs >> source & 1u) != 0 && !takes_modifiers(line, source)) frame.refuse("takes no absolute value");
  }
  for (unsigned operand = 0; operand < 4; ++operand) {
    if ((out.op_sel >> operand & 1u) == 0 || takes_half(frame, line, operand)) continue;
    if (permutes && operand < 2) continue;  // fetch inactive, bound control
    frame.refuse("operand " + std::to_string(operand) + " has no halves");
  }
}

Operand any_source(Frame& frame, const OpcodeInfo& line, unsigned code, unsigned index) {
  const DataType type = line.src[index];
  if (type == DataType::none) {
    frame.require_zero(code, "an absent source", 1);
    return {};
  }
  if (type == DataType::mask) return frame.scalar(code, type);
  if (index == 0) {
    const LaneControl control = lane_control(frame, code);
    if (control == LaneControl::dpp16 || control == LaneControl::dpp8) {
      if (!frame.gfx11()) frame.refuse("operand " + std::to_string(code) + " is reserved");
      bool wide = false;
      for (const DataType each : {line.dst, line.src[0], line.src[1], line.src[2]}) {
        wide = wide || (each != DataType::mask && dwords_of(each, frame.wave()) > 1);
      }
      if (wide) frame.refuse("takes no DPP");
      return take_dpp(frame, code, type, SourceModifiers::in_instruction);
    }
  }
  const Operand result = frame.source(code, type);
  const bool wide_group =
      dwords_of(type, frame.wave()) > 2 || frame.out.has(flag::matrix) || (index == 0 && needs_vgpr(line.opcode));
  const bool constant = result.code >= operand::integers && result.code != operand::literal;
  if (wide_group && !result.is_vgpr() && !(is_matrix(type) && constant))
    frame.refuse("source " + std::to_string(index) + " is no VGPR", 1);
  const bool lane_selector = index > 0 && frame.out.has(flag::scalar_rest);
  if (result.is_vgpr() && (lane_selector || (index == 0 && frame.out.has(flag::scalar_src0)))) {
    frame.refuse("source " + std::to_string(index) + " is scalar, not a VGPR", 1);
  }
  return result;
}

void take_sources(Frame& frame, const OpcodeInfo& line, std::uint32_t second) {
  // The first source last: its DPP dword follows all others, and excludes a literal.
  Instruction& out = frame.out;
  out.src[1] = any_source(frame, line, field(second, 17, 9), 1);
  out.src[2] = any_source(frame, line, field(second, 26, 18), 2);
  const unsigned before = out.dwords;
  out.src[0] = any_source(frame, line, field(second, 8, 0), 0);
  if (out.lanes != LaneControl::none && before > 2) frame.refuse("has both DPP and a literal", 1);
}

// Sums of matrices: op_sel chooses the half for 16-bit elements; neg is a sign for integers' factors, and for others
// negates; neg_hi of the third is its absolute value.
void check_matrix_modifiers(Frame& frame, const OpcodeInfo& line) {
  const Instruction& out = frame.out;
  const unsigned halves = bits_of(line.dst) == 16 ? 4u : 0u;
  if ((out.op_sel & ~halves) != 0) frame.refuse("a source has no halves");
  frame.require_zero(out.op_sel_hi ^ 7u, "op_sel_hi of 0");
  if (line.dst == DataType::matrix_i32) {
    if (out.neg_hi != 0 || (out.neg & 4u) != 0) frame.refuse("takes no negation");
  } else if (out.clamp) {
    frame.refuse("takes no clamp");
  }
}

// Halves and signs belong to sources that are there; signs to floats, and to the dot products of bytes that take
// either.
void check_packed_modifiers(Frame& frame, const OpcodeInfo& line) {
  const Instruction& out = frame.out;
  const bool either_sign = out.opcode == Opcode::v_dot4_i32_iu8 || out.opcode == Opcode::v_dot8_i32_iu4;
  for (unsigned source = 0; source < 3; ++source) {
    const bool present = line.src[source] != DataType::none;
    const bool sign = ((out.neg | out.neg_hi) >> source & 1u) != 0;
    if (!present && (sign || (out.op_sel >> source & 1u) != 0)) frame.refuse("a modifier of an absent source is set");
    if (sign && present && !is_float(line.src[source]) && !either_sign) frame.refuse("takes no negation");
  }
}

}  // namespace

void decode_vop3(Frame& frame) {
  const std::uint32_t first = frame.word(0);
  frame.out.dwords = 2;
  const std::uint32_t second = frame.word(1);
  const OpcodeInfo& line = frame.find(Encoding::vop3, field(first, 25, 16), Format::vop3);
  Instruction& out = frame.out;
  if (out.has(flag::no_operands)) {
    frame.require_zero(field(first, 15, 0), "an operand or modifier");
    frame.require_zero(second, "an operand or modifier", 1);
    return;
  }
  if (out.has(flag::carry_out)) out.format = Format::vop3sd;
  take_modifiers(frame, line, first, second);
  take_sources(frame, line, second);
  const unsigned dst = field(first, 7, 0);
  if (line.dst == DataType::mask || out.has(flag::scalar_dst)) {
    // v_cmpx writes EXEC alone, whatever the field says. LLVM 15 leaves it 0 on gfx10.3; later compilers name EXEC.
    const bool unnamed = out.has(flag::exec_out) && dst == 0;
    out.dst = frame.scalar(unnamed ? operand::exec_lo : dst, line.dst);
    if (out.has(flag::exec_out) && out.dst.code != operand::exec_lo) frame.refuse("its destination is EXEC alone");
    if (out.has(flag::scalar_dst) && !out.src[0].is_vgpr()) frame.refuse("reads a lane of a VGPR", 1);
  } else {
    out.dst = frame.vector(dst, line.dst);
  }
  if (out.has(flag::carry_out)) out.sdst = frame.scalar(field(first, 14, 8), DataType::mask);
}

// 11001100 0 op[22:16] clamp15 op_sel_hi2 14 op_sel[13:11] neg_hi[10:8] vdst[7:0]; dword 1 as VOP3 with op_sel_hi in
// omod.
void decode_vop3p(Frame& frame) {
  const std::uint32_t first = frame.word(0);
  frame.out.dwords = 2;
  const std::uint32_t second = frame.word(1);
  frame.require_zero(field(first, 23, 23), "bit 23");
  const OpcodeInfo& line = frame.find(Encoding::vop3p, field(first, 22, 16), Format::vop3p);
  Instruction& out = frame.out;
  out.clamp = bit(first, 15);
  out.op_sel = static_cast<std::uint8_t>(field(first, 13, 11));
  out.op_sel_hi = static_cast<std::uint8_t>(field(second, 28, 27) | field(first, 14, 14) << 2);
  out.neg_hi = static_cast<std::uint8_t>(field(first, 10, 8));
  out.neg = static_cast<std::uint8_t>(field(second, 31, 29));
  take_sources(frame, line, second);
  out.dst = frame.vector(field(first, 7, 0), line.dst);
  if (out.has(flag::matrix)) {
    check_matrix_modifiers(frame, line);
  } else {
    check_packed_modifiers(frame, line);
  }
}

// VOPD (gfx11, wave32): 110010 opx[25:22] opy[21:17] vsrcx1[16:9] srcx0[8:0]; dword 1: vdstx[31:24] vdsty[23:17]
// vsrcy1[16:9] srcy0[8:0]. The second destination's lowest bit is the inverse of the first's. One literal serves both.

namespace {

struct HalfFields {
  unsigned src0;
  unsigned src1;
};

void take_half(Frame& frame, Opcode opcode, const HalfFields& fields, std::array<Operand, 3>& src) {
  const OpcodeInfo& line = info(opcode);
  src[0] = frame.source(fields.src0, line.src[0]);
  if ((line.flags & flag::literal_mul) != 0) {
    src[1] = frame.source(operand::literal, line.src[1]);
    src[2] = frame.vector(fields.src1, line.src[2]);
    return;
  }
  if (line.src[1] == DataType::none) frame.require_zero(fields.src1, "an absent source");
  src[1] = frame.vector(fields.src1, line.src[1]);
  if ((line.flags & flag::literal_add) != 0) src[2] = frame.source(operand::literal, line.src[2]);
  if ((line.flags & flag::mask_in) != 0) src[2] = frame.mask_register(operand::vcc_lo);
}

// Four banks of registers, by the number's lowest two bits; the halves may not read one bank through the same port.
bool same_bank(const Operand& one, const Operand& other) {
  return one.is_vgpr() && other.is_vgpr() && one.index() % 4 == other.index() % 4;
}

}  // namespace

void decode_vopd(Frame& frame) {
  const std::uint32_t first = frame.word(0);
  frame.out.dwords = 2;
  const std::uint32_t second = frame.word(1);
  Instruction& out = frame.out;
  out.format = Format::vopd;
  if (frame.wave() != WaveSize::wave32) return frame.refuse("VOPD exists for wave32 only");
  const Opcode x = find_dual_opcode(Half::first, field(first, 25, 22));
  const Opcode y = find_dual_opcode(Half::second, field(first, 21, 17));
  if (x == Opcode::invalid || y == Opcode::invalid) {
    return frame.refuse("VOPD has no opcodes " + std::to_string(field(first, 25, 22)) + " and " +
                        std::to_string(field(first, 21, 17)));
  }
  out.opcode = x;
  out.y.opcode = y;
  std::array<Operand, 3> src;
  take_half(frame, x, {field(first, 8, 0), field(first, 16, 9)}, src);
  take_half(frame, y, {field(second, 8, 0), field(second, 16, 9)}, out.y.src);
  for (unsigned index = 0; index < 3; ++index) out.src[index] = src[index];
  const unsigned dst = field(second, 31, 24);
  out.dst = frame.vector(dst, info(x).dst);
  out.y.dst = frame.vector(field(second, 23, 17) << 1 | (~dst & 1u), info(y).dst);
  if (same_bank(src[0], out.y.src[0]) || same_bank(src[1], out.y.src[1])) {
    frame.refuse("both halves read VGPRs of one bank through one port", 1);
  }
}

}  // namespace kiln::simulator::isa
