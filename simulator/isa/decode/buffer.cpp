// MUBUF and MTBUF: 111000 and 111010; dword 1: soffset[31:24] … srsrc[20:16] (in fours) vdata[15:8] vaddr[7:0].
// gfx11:   op[25:18] (MTBUF: format[25:19] op[18:15]) glc14 dlc13 slc12 offset[11:0]; idxen23 offen22 tfe21 in dword 1.
// gfx10.3: op[24:18] and its highest bit in 25 (MTBUF: format[25:19] op[18:16], highest bit in dword 1's 21) lds16
// dlc15
//          glc14 idxen13 offen12 offset[11:0]; tfe23 slc22 in dword 1.
#include "simulator/isa/decode/frame.hpp"

namespace kiln::simulator::isa {
namespace {

void take_buffer(Frame& frame, const OpcodeInfo& line, std::uint32_t first, std::uint32_t second) {
  Instruction& out = frame.out;
  out.glc = bit(first, 14);
  bool tfe = false;
  if (frame.gfx11()) {
    out.dlc = bit(first, 13);
    out.slc = bit(first, 12);
    out.idxen = bit(second, 23);
    out.offen = bit(second, 22);
    tfe = bit(second, 21);
  } else {
    out.dlc = bit(first, 15);
    out.idxen = bit(first, 13);
    out.offen = bit(first, 12);
    out.slc = bit(second, 22);
    tfe = bit(second, 23);
  }
  out.offset = static_cast<std::int32_t>(field(first, 11, 0));
  if (out.has(flag::no_operands)) {
    frame.require_zero(second, "an operand", 1);
    frame.require_zero(field(first, 14, 0), "a modifier");
    return;
  }
  if (tfe) frame.refuse("tfe is not simulated", 1);
  const bool both = out.idxen && out.offen;
  const unsigned vaddr = field(second, 7, 0);
  // Without either, compilers leave anything in the field.
  if (out.idxen || out.offen) out.src[0] = frame.vector(vaddr, both ? DataType::b64 : DataType::b32);
  out.src[1] = frame.scalar(field(second, 20, 16) * 4, DataType::b128);
  const unsigned soffset = field(second, 31, 24);
  if (soffset == operand::literal) frame.refuse("takes no literal", 1);
  out.src[2] = frame.source(soffset, DataType::u32);
  const unsigned vdata = field(second, 15, 8);
  out.src[3] = frame.vector(vdata, line.src[1]);
  if (!out.has(flag::atomic) || out.glc) out.dst = frame.vector(vdata, line.dst);
}

}  // namespace

void decode_mubuf(Frame& frame) {
  const std::uint32_t first = frame.word(0);
  frame.out.dwords = 2;
  const std::uint32_t second = frame.word(1);
  const unsigned number = frame.gfx11() ? field(first, 25, 18) : field(first, 24, 18) | field(first, 25, 25) << 7;
  const OpcodeInfo& line = frame.find(Encoding::mubuf, number, Format::mubuf);
  if (frame.gfx11()) {
    frame.require_zero(field(first, 17, 15), "a bit of [17:15]");
  } else {
    frame.require_zero(field(first, 17, 17), "bit 17");
    frame.require_zero(field(second, 21, 21), "bit 21", 1);
    if (bit(first, 16)) frame.refuse("loads to LDS are not simulated");
  }
  take_buffer(frame, line, first, second);
}

void decode_mtbuf(Frame& frame) {
  const std::uint32_t first = frame.word(0);
  frame.out.dwords = 2;
  const std::uint32_t second = frame.word(1);
  const unsigned number = frame.gfx11() ? field(first, 18, 15) : field(first, 18, 16) | field(second, 21, 21) << 3;
  const OpcodeInfo& line = frame.find(Encoding::mtbuf, number, Format::mtbuf);
  frame.out.buffer_format = static_cast<std::uint8_t>(field(first, 25, 19));
  take_buffer(frame, line, first, second);
}

}  // namespace kiln::simulator::isa
