// SOP2, SOP1, SOPC, SOPK, SOPP: one dword and perhaps a literal.
#include "simulator/isa/decode_frame.hpp"

namespace kiln::simulator::isa {

// 10 op[29:23] sdst[22:16] ssrc1[15:8] ssrc0[7:0]
void decode_sop2(Frame& frame) {
  const std::uint32_t word = frame.word(0);
  const OpcodeInfo& line = frame.find(Encoding::sop2, field(word, 29, 23), Format::sop2);
  frame.out.src[0] = frame.source(field(word, 7, 0), line.src[0]);
  frame.out.src[1] = frame.source(field(word, 15, 8), line.src[1]);
  frame.out.dst = frame.scalar(field(word, 22, 16), line.dst);
}

namespace {

bool sends_message(Opcode opcode) { return opcode == Opcode::s_sendmsg_rtn_b32 || opcode == Opcode::s_sendmsg_rtn_b64; }

// Jumps, and moves whose source is counted from M0.
bool needs_register(Opcode opcode) {
  switch (opcode) {
    case Opcode::s_movrels_b32:
    case Opcode::s_movrels_b64:
    case Opcode::s_movrelsd_2_b32:
    case Opcode::s_setpc_b64:
    case Opcode::s_swappc_b64:
      return true;
    default:
      return false;
  }
}

}  // namespace

// 101111101 sdst[22:16] op[15:8] ssrc0[7:0]; s_sendmsg_rtn has its message in ssrc0
void decode_sop1(Frame& frame) {
  const std::uint32_t word = frame.word(0);
  const OpcodeInfo& line = frame.find(Encoding::sop1, field(word, 15, 8), Format::sop1);
  frame.out.src[0] = frame.source(field(word, 7, 0), line.src[0]);
  frame.out.dst = frame.scalar(field(word, 22, 16), line.dst);
  if (sends_message(frame.out.opcode)) {
    frame.out.simm16 = static_cast<std::int32_t>(field(word, 7, 0));
  } else if (line.src[0] == DataType::none) {
    frame.require_zero(field(word, 7, 0), "a source");
  }
  const bool registers_only = needs_register(frame.out.opcode);
  if (registers_only && frame.out.src[0].code >= operand::integers) frame.refuse("its source is no register");
  if (line.dst == DataType::none) frame.require_zero(field(word, 22, 16), "a destination");
}

// 101111110 op[22:16] ssrc1[15:8] ssrc0[7:0]
void decode_sopc(Frame& frame) {
  const std::uint32_t word = frame.word(0);
  const OpcodeInfo& line = frame.find(Encoding::sopc, field(word, 22, 16), Format::sopc);
  frame.out.src[0] = frame.source(field(word, 7, 0), line.src[0]);
  frame.out.src[1] = frame.source(field(word, 15, 8), line.src[1]);
}

namespace {

bool compares_unsigned(Opcode opcode) {
  switch (opcode) {
    case Opcode::s_cmpk_eq_u32:
    case Opcode::s_cmpk_lg_u32:
    case Opcode::s_cmpk_gt_u32:
    case Opcode::s_cmpk_ge_u32:
    case Opcode::s_cmpk_lt_u32:
    case Opcode::s_cmpk_le_u32:
      return true;
    default:
      return false;
  }
}

}  // namespace

// 1011 op[27:23] sdst[22:16] simm16[15:0]
void decode_sopk(Frame& frame) {
  const std::uint32_t word = frame.word(0);
  const OpcodeInfo& line = frame.find(Encoding::sopk, field(word, 27, 23), Format::sopk);
  const std::uint32_t constant = field(word, 15, 0);
  Instruction& out = frame.out;
  out.simm16 = compares_unsigned(out.opcode) ? static_cast<std::int32_t>(constant) : sign_extend(constant, 16);
  out.dst = frame.scalar(field(word, 22, 16), line.dst);
  if (out.opcode == Opcode::s_setreg_imm32_b32) {
    frame.require_zero(field(word, 22, 16), "a register");
    out.src[0] = frame.source(operand::literal, line.src[0]);
  } else {
    out.src[0] = frame.scalar(field(word, 22, 16), line.src[0]);
  }
  if (out.has(flag::branch)) out.offset = out.simm16 * 4;
  if (out.opcode == Opcode::s_version) frame.require_zero(field(word, 22, 16), "a register");
}

// 101111111 op[22:16] simm16[15:0]
void decode_sopp(Frame& frame) {
  const std::uint32_t word = frame.word(0);
  frame.find(Encoding::sopp, field(word, 22, 16), Format::sopp);
  frame.out.simm16 = static_cast<std::int32_t>(field(word, 15, 0));
  if (frame.out.has(flag::no_operands)) frame.require_zero(field(word, 15, 0), "a constant");
  if (frame.out.has(flag::branch)) frame.out.offset = sign_extend(field(word, 15, 0), 16) * 4;
}

}  // namespace kiln::simulator::isa
