// VOPD (gfx11, wave32): 110010 opx[25:22] opy[21:17] vsrcx1[16:9] srcx0[8:0]; dword 1: vdstx[31:24] vdsty[23:17]
// vsrcy1[16:9] srcy0[8:0]. The second destination's lowest bit is the inverse of the first's. One literal serves both.
#include "simulator/isa/decode/frame.hpp"

namespace kiln::simulator::isa {
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
