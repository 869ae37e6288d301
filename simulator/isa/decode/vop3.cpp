// VOP3 (also the e64 forms of VOP2, VOP1, VOPC), VOP3SD and VOP3P: two dwords, then a literal or, on gfx11, DPP.
// 110101 op[25:16] clamp15 op_sel[14:11] abs[10:8] vdst[7:0]; dword 1: neg[31:29] omod[28:27] src2[26:18] src1[17:9]
// src0[8:0]. VOP3SD has sdst in [14:8].
#include "simulator/isa/decode/frame.hpp"
#include "simulator/isa/decode/lanes.hpp"

namespace kiln::simulator::isa {
namespace {

bool is_select(Opcode opcode) { return opcode == Opcode::v_cndmask_b32 || opcode == Opcode::v_cndmask_b16; }

// Float sources take abs and neg, and so do the 32-bit values that a select chooses from.
bool takes_modifiers(const OpcodeInfo& line, unsigned source) {
  if (is_select(line.opcode)) return source < 2 && line.opcode == Opcode::v_cndmask_b32;
  return is_float(line.src[source]) && !is_packed(line.src[source]);
}

bool is_half(DataType type) { return bits_of(type) == 16 && !is_packed(type); }

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

}  // namespace kiln::simulator::isa
