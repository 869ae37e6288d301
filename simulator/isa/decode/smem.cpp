// SMEM: 111101 op[25:18] … sdata[12:6] sbase[5:0] (in pairs); dword 1: soffset[31:25] offset[20:0], signed.
// glc and dlc: bits 14 and 13 on gfx11, 16 and 14 on gfx10.3.
#include "simulator/isa/decode/frame.hpp"

namespace kiln::simulator::isa {

void decode_smem(Frame& frame) {
  const std::uint32_t word = frame.word(0);
  frame.out.dwords = 2;
  const std::uint32_t second = frame.word(1);
  const OpcodeInfo& line = frame.find(Encoding::smem, field(word, 25, 18), Format::smem);
  Instruction& out = frame.out;
  if (out.has(flag::no_operands)) {
    frame.require_zero(field(word, 17, 0), "an operand or modifier");
    return;
  }
  const unsigned glc = frame.gfx11() ? 14 : 16;
  const unsigned dlc = frame.gfx11() ? 13 : 14;
  out.glc = bit(word, glc);
  out.dlc = bit(word, dlc);
  frame.require_zero(field(word, 17, 13) & ~(1u << (glc - 13) | 1u << (dlc - 13)), "a bit of [17:13]");
  out.dst = frame.scalar(field(word, 12, 6), line.dst);
  if (out.has(flag::load) && (out.dst.code == operand::m0 || out.dst.code >= operand::exec_lo)) {
    frame.refuse("loads to SGPRs, VCC and null only");
  }
  if (line.src[0] == DataType::none) {
    frame.require_zero(field(word, 5, 0), "a base");
    return;
  }
  frame.require_zero(field(second, 24, 21), "a bit of [24:21]", 1);
  out.src[0] = frame.scalar(field(word, 5, 0) * 2, line.src[0]);
  out.src[1] = frame.scalar(field(second, 31, 25), line.src[1]);
  out.offset = sign_extend(field(second, 20, 0), 21);
}

}  // namespace kiln::simulator::isa
