// DS: 110110 op[25:18] gds17 offset1[15:8] offset0[7:0]; dword 1: vdst[31:24] data1[23:16] data0[15:8] addr[7:0].
#include "simulator/isa/decode/frame.hpp"

namespace kiln::simulator::isa {
namespace {

Operand used(Frame& frame, unsigned number, DataType type, const char* what) {
  if (type == DataType::none) frame.require_zero(number, what, 1);
  return frame.vector(number, type);
}

}  // namespace

void decode_ds(Frame& frame) {
  const std::uint32_t first = frame.word(0);
  frame.out.dwords = 2;
  const std::uint32_t second = frame.word(1);
  const OpcodeInfo& line = frame.find(Encoding::ds, field(first, 25, 18), Format::ds);
  Instruction& out = frame.out;
  if (out.has(flag::no_operands)) {
    frame.require_zero(field(first, 17, 0), "an offset or modifier");
    frame.require_zero(second, "an operand", 1);
    return;
  }
  if (bit(first, 17)) frame.refuse("GDS is not simulated");
  frame.require_zero(field(first, 16, 16), "bit 16");
  if (out.has(flag::two_addresses)) {
    out.offset = static_cast<std::int32_t>(field(first, 7, 0));
    out.offset1 = static_cast<std::uint8_t>(field(first, 15, 8));
  } else {
    out.offset = static_cast<std::int32_t>(field(first, 15, 0));
  }
  out.dst = used(frame, field(second, 31, 24), line.dst, "an absent destination");
  out.src[0] = used(frame, field(second, 7, 0), line.src[0], "an absent address");
  out.src[1] = used(frame, field(second, 15, 8), line.src[1], "absent data");
  out.src[2] = used(frame, field(second, 23, 16), line.src[2], "absent second data");
}

}  // namespace kiln::simulator::isa
