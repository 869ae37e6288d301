#include "simulator/isa/decoder.hpp"

#include "simulator/isa/decode_frame.hpp"

namespace kiln::simulator {
namespace {

using namespace isa;

// By the leading ones and zeros of the first word, longest pattern first within each branch.
void decode_format(Frame& frame, std::uint32_t word) {
  if (!bit(word, 31)) {
    if (field(word, 31, 25) == 0b0111111) return decode_vop1(frame);
    if (field(word, 31, 25) == 0b0111110) return decode_vopc(frame);
    return decode_vop2(frame);
  }
  if (!bit(word, 30)) {
    switch (field(word, 31, 23)) {
      case 0b101111101:
        return decode_sop1(frame);
      case 0b101111110:
        return decode_sopc(frame);
      case 0b101111111:
        return decode_sopp(frame);
      default:
        return field(word, 31, 28) == 0b1011 ? decode_sopk(frame) : decode_sop2(frame);
    }
  }
  switch (field(word, 31, 26)) {
    case 0b110010:
      return frame.gfx11() ? decode_vopd(frame) : decode_graphics(frame);
    case 0b110011:
      return field(word, 25, 24) == 0 ? decode_vop3p(frame) : decode_graphics(frame);
    case 0b110101:
      return decode_vop3(frame);
    case 0b110110:
      return decode_ds(frame);
    case 0b110111:
      return decode_flat(frame);
    case 0b111000:
      return decode_mubuf(frame);
    case 0b111010:
      return decode_mtbuf(frame);
    case 0b111101:
      return decode_smem(frame);
    case 0b111100:
      return decode_mimg(frame);
    case 0b111110:
      return decode_graphics(frame);
    default:
      frame.refuse("no encoding starts with these bits");
  }
}

}  // namespace

std::optional<Fault> decode(const CodeTarget& target, std::span<const std::uint32_t> words, std::uint64_t address,
                            Instruction& out) {
  out = Instruction{};
  out.dwords = 1;
  Frame frame(target, words, address, out);
  const std::uint32_t first = frame.word(0);
  if (!frame.failed()) decode_format(frame, first);
  return frame.take_fault();
}

}  // namespace kiln::simulator

// SOP2, SOP1, SOPC, SOPK, SOPP: one dword and perhaps a literal.

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
