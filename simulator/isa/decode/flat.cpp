// FLAT, GLOBAL, SCRATCH. gfx11: 110111 op[24:18] seg[17:16] slc15 glc14 dlc13 offset[12:0]; gfx10.3: op[24:18] slc17
// glc16 seg[15:14] lds13 dlc12 offset[11:0]. Dword 1: vdst[31:24] sve23 (gfx11's scratch) saddr[22:16] data[15:8]
// addr[7:0]. Segment 0 is flat, 1 scratch, 2 global. A VGPR field that is not used holds anything.
#include "simulator/isa/decode/frame.hpp"

namespace kiln::simulator::isa {
namespace {

struct Kind {
  Encoding encoding;
  Format format;
};

constexpr Kind kinds[] = {
    {Encoding::flat, Format::flat}, {Encoding::scratch, Format::scratch}, {Encoding::global, Format::global}};

// No scalar address: null, and on gfx10.3 for scratch without any address operand 127 as well.
bool is_off(const Frame& frame, unsigned code) { return code == (frame.gfx11() ? 124u : 125u); }

void take_addresses(Frame& frame, std::uint32_t second) {
  Instruction& out = frame.out;
  const unsigned saddr = field(second, 22, 16);
  const unsigned vaddr = field(second, 7, 0);
  const bool sve = bit(second, 23);
  bool has_saddr = !is_off(frame, saddr);
  bool has_vaddr = true;
  if (out.format == Format::scratch) {
    if (frame.gfx11()) {
      has_vaddr = sve;
    } else {
      frame.require_zero(sve, "bit 23", 1);
      if (saddr == operand::exec_hi) has_saddr = has_vaddr = false;
      if (has_saddr) has_vaddr = false;
    }
    if (has_saddr && saddr == operand::exec_hi) frame.refuse("takes no EXEC for an address", 1);
    if (has_saddr) out.src[2] = frame.scalar(saddr, DataType::b32);
    if (has_vaddr) out.src[0] = frame.vector(vaddr, DataType::b32);
    return;
  }
  frame.require_zero(sve, "bit 23", 1);
  if (out.format == Format::flat && has_saddr) frame.refuse("takes no scalar address", 1);
  if (out.opcode == Opcode::global_load_addtid_b32 || out.opcode == Opcode::global_store_addtid_b32) {
    frame.require_zero(vaddr, "an address", 1);
    if (has_saddr) out.src[2] = frame.scalar(saddr, DataType::b64);
    return;
  }
  if (has_saddr) out.src[2] = frame.scalar(saddr, DataType::b64);
  out.src[0] = frame.vector(vaddr, has_saddr ? DataType::b32 : DataType::b64);
}

}  // namespace

void decode_flat(Frame& frame) {
  const std::uint32_t first = frame.word(0);
  frame.out.dwords = 2;
  const std::uint32_t second = frame.word(1);
  Instruction& out = frame.out;
  const unsigned segment = frame.gfx11() ? field(first, 17, 16) : field(first, 15, 14);
  if (segment == 3) return frame.refuse("segment 3 is reserved");
  const OpcodeInfo& line = frame.find(kinds[segment].encoding, field(first, 24, 18), kinds[segment].format);
  frame.require_zero(field(first, 25, 25), "bit 25");
  unsigned offset_bits = 13;
  if (frame.gfx11()) {
    out.slc = bit(first, 15);
    out.glc = bit(first, 14);
    out.dlc = bit(first, 13);
  } else {
    offset_bits = 12;
    out.slc = bit(first, 17);
    out.glc = bit(first, 16);
    out.dlc = bit(first, 12);
    if (bit(first, 13)) frame.refuse("loads to LDS are not simulated");
  }
  const std::uint32_t offset = field(first, offset_bits - 1, 0);
  if (segment == 0) {
    frame.require_zero(offset >> (offset_bits - 1), "a flat offset's highest bit");
    out.offset = static_cast<std::int32_t>(offset);
  } else {
    out.offset = sign_extend(offset, offset_bits);
  }
  take_addresses(frame, second);
  const bool returns = !out.has(flag::atomic) || out.glc;
  if (returns) out.dst = frame.vector(field(second, 31, 24), line.dst);
  out.src[1] = frame.vector(field(second, 15, 8), line.src[1]);
}

}  // namespace kiln::simulator::isa
