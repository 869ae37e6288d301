// Readers of the memory formats: SMEM, DS, flat, MUBUF, MTBUF, MIMG; and of exports.

#include "simulator/isa/decode_frame.hpp"
#include "simulator/isa/memory_formats.hpp"

namespace kiln::simulator::isa {

// SMEM: 111101 op[25:18] … sdata[12:6] sbase[5:0] (in pairs); dword 1: soffset[31:25] offset[20:0], signed.
// glc and dlc: bits 14 and 13 on gfx11, 16 and 14 on gfx10.3.

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

// DS: 110110 op[25:18] gds17 offset1[15:8] offset0[7:0]; dword 1: vdst[31:24] data1[23:16] data0[15:8] addr[7:0].

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

// FLAT, GLOBAL, SCRATCH. gfx11: 110111 op[24:18] seg[17:16] slc15 glc14 dlc13 offset[12:0]; gfx10.3: op[24:18] slc17
// glc16 seg[15:14] lds13 dlc12 offset[11:0]. Dword 1: vdst[31:24] sve23 (gfx11's scratch) saddr[22:16] data[15:8]
// addr[7:0]. Segment 0 is flat, 1 scratch, 2 global. A VGPR field that is not used holds anything.

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

namespace {

DataType words_type(unsigned dwords) {
  constexpr DataType types[] = {DataType::none, DataType::b32,  DataType::b64,
                                DataType::b96,  DataType::b128, DataType::b160};
  return types[dwords];
}

void take_status(Frame& frame, bool tfe, unsigned dword) {
  frame.out.tfe = tfe;
  if (tfe && !frame.out.has(flag::load)) frame.refuse("tfe is not simulated", dword);
}

}  // namespace

// MUBUF and MTBUF: 111000 and 111010; dword 1: soffset[31:24] … srsrc[20:16] (in fours) vdata[15:8] vaddr[7:0].
// gfx11:   op[25:18] (MTBUF: format[25:19] op[18:15]) glc14 dlc13 slc12 offset[11:0]; idxen23 offen22 tfe21 in dword 1.
// gfx10.3: op[24:18] and its highest bit in 25 (MTBUF: format[25:19] op[18:16], highest bit in dword 1's 21) lds16
// dlc15
//          glc14 idxen13 offen12 offset[11:0]; tfe23 slc22 in dword 1.

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
  take_status(frame, tfe, 1);
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
  const DataType loaded = tfe ? words_type(dwords_of(line.dst, WaveSize::wave32) + 1) : line.dst;
  if (!out.has(flag::atomic) || out.glc) out.dst = frame.vector(vdata, loaded);
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

// MIMG 111100: dword 1: srsrc[20:16] (in fours) vdata[15:8] vaddr[7:0].
// gfx11:   op[25:18] d16 17, a16 16, r128 15, glc14 dlc13 slc12 dmask[11:8] unrm7 dim[4:2] nsa0; ssamp[30:26] lwe22
//          tfe21 in dword 1. With nsa one dword follows: four more VGPRs of the address; what goes beyond stands behind
//          the last.
// gfx10.3: slc25 op[24:18] and its highest bit in 0, lwe17 tfe16 r128 15, glc13 unrm12 dmask[11:8] dlc7 dim[5:3]
//          nsa[2:1]: the dwords that follow; d16 31, a16 30, ssamp[25:21] in dword 1.

namespace {

unsigned components(const Instruction& instruction) {
  if (image_shape(instruction.opcode).gather) return 4;
  const auto count = static_cast<unsigned>(__builtin_popcount(instruction.image.mask));
  return count == 0 ? 1 : count;
}

// The VGPRs of the address: `listed` dwords of them follow.
void take_addresses(Frame& frame, unsigned first, unsigned listed) {
  Instruction& out = frame.out;
  ImageAccess& image = out.image;
  const unsigned count = address_count(image_shape(out.opcode), image.dim, image.a16);
  image.addresses = static_cast<std::uint8_t>(count);
  image.scattered = listed != 0;
  std::array<unsigned, 13> numbers{first};
  for (unsigned dword = 0; dword < listed; ++dword) {
    const std::uint32_t word = frame.take_word();
    for (unsigned i = 0; i < 4; ++i) numbers[1 + dword * 4 + i] = field(word, i * 8 + 7, i * 8);
  }
  const unsigned room = 1 + 4 * listed;
  if (const unsigned pointer = image_shape(out.opcode).ray_pointer; pointer != 0 && listed != 0 && frame.gfx11()) {
    // One VGPR for each part, which goes on behind it.
    const unsigned parts[] = {pointer, 1, 3, 3, 3};
    unsigned at = 0;
    for (unsigned part = 0; at < count; ++part) {
      if (numbers[part] + parts[part] > 256) frame.refuse("a part of a ray beyond v255", 2);
      for (unsigned i = 0; i < parts[part]; ++i) image.address[at++] = static_cast<std::uint8_t>(numbers[part] + i);
    }
    return;
  }
  if (listed != 0 && count > room && !frame.gfx11()) {
    frame.refuse("lists " + std::to_string(room) + " VGPRs of an address that has " + std::to_string(count));
  }
  for (unsigned i = 0; i < count; ++i) {
    const unsigned number = i < room ? numbers[i] : numbers[room - 1] + i - (room - 1);
    if (number > 255) {
      frame.refuse(std::to_string(count) + " VGPRs from v" + std::to_string(first) + " on exceed 256", 1);
      return;
    }
    image.address[i] = static_cast<std::uint8_t>(number);
  }
}

}  // namespace

void decode_mimg(Frame& frame) {
  Instruction& out = frame.out;
  ImageAccess& image = out.image;
  const std::uint32_t first = frame.word(0);
  out.dwords = 2;
  const bool gfx11 = frame.gfx11();
  const unsigned number = gfx11 ? field(first, 25, 18) : field(first, 24, 18) | field(first, 0, 0) << 7;
  frame.find(Encoding::mimg, number, Format::mimg);
  if (frame.failed()) return;
  const std::uint32_t second = frame.word(1);
  image.mask = static_cast<std::uint8_t>(field(first, 11, 8));
  out.glc = bit(first, gfx11 ? 14 : 13);
  out.dlc = bit(first, gfx11 ? 13 : 7);
  out.slc = bit(first, gfx11 ? 12 : 25);
  image.unnormalised = bit(first, gfx11 ? 7 : 12);
  image.dim = static_cast<ImageDim>(gfx11 ? field(first, 4, 2) : field(first, 5, 3));
  image.a16 = gfx11 ? bit(first, 16) : bit(second, 30);
  image.d16 = gfx11 ? bit(first, 17) : bit(second, 31);
  const unsigned sampler = gfx11 ? field(second, 30, 26) : field(second, 25, 21);
  if (gfx11) {
    frame.require_zero(field(first, 6, 5) | field(first, 1, 1), "a bit of [6:5] or 1");
    frame.require_zero(field(second, 25, 23) | field(second, 31, 31), "a bit of [25:23] or 31", 1);
  } else {
    frame.require_zero(field(first, 6, 6) | field(first, 14, 14), "bit 6 or 14");
    frame.require_zero(field(second, 29, 26), "a bit of [29:26]", 1);
  }
  if (out.has(flag::sampler) || image_shape(out.opcode).level) {
    frame.require_zero(image.dim >= ImageDim::two_samples ? 1 : 0, "a dimension of samples");
  }
  if (!out.has(flag::load | flag::store | flag::atomic)) frame.require_zero(image.d16 ? 1 : 0, "d16");
  const bool ray = image_shape(out.opcode).ray_pointer != 0;
  if (ray) {
    const bool right = image.mask == 15 && image.unnormalised && bit(first, 15) && !image.d16 && !out.tfe;
    if (!right || image.dim != ImageDim::one) frame.refuse("has other fields than dmask:15 unrm r128");
  } else if (bit(first, 15)) {
    frame.refuse("r128 is not simulated");
  }
  take_status(frame, gfx11 ? bit(second, 21) : bit(first, 16), gfx11 ? 1 : 0);
  if (gfx11 ? bit(second, 22) : bit(first, 17)) frame.refuse("lwe is not simulated");
  if (!out.has(flag::sampler)) frame.require_zero(sampler, "a sampler", 1);
  if (out.has(flag::atomic)) {
    const bool compares = out.opcode == Opcode::image_atomic_cmpswap || out.opcode == Opcode::image_atomic_fcmpswap;
    const unsigned one = compares ? 3 : 1, two = compares ? 15 : 3;
    if ((image.mask != one && image.mask != two) || image.d16) frame.refuse("has not the components of an atomic");
  }

  take_addresses(frame, field(second, 7, 0), gfx11 ? field(first, 0, 0) : field(first, 2, 1));
  out.src[1] = frame.scalar(field(second, 20, 16) * 4, ray ? DataType::b128 : DataType::b256);
  if (out.has(flag::sampler)) out.src[2] = frame.scalar(sampler * 4, DataType::b128);
  const unsigned dwords = (image.d16 ? (components(out) + 1) / 2 : components(out)) + (out.tfe ? 1 : 0);
  const Operand data = frame.vector(field(second, 15, 8), words_type(dwords));
  const bool gives = !out.has(flag::store) && (!out.has(flag::atomic) || out.glc);
  if (gives) out.dst = data;
  if (out.has(flag::store | flag::atomic)) out.src[3] = data;
}

// What belongs to drawing is known by name, so that the refusal says what a program wanted.

// EXP 111110. gfx11: VINTERP 11001101 op[22:16], LDSDIR 11001110 op[21:20]; gfx10.3: VINTRP 110010 op[17:16].
void decode_graphics(Frame& frame) {
  const std::uint32_t word = frame.word(0);
  switch (field(word, 31, 26)) {
    case 0b111110:
      frame.find(Encoding::exp, 0, Format::invalid);
      break;
    case 0b110010:
      frame.find(Encoding::vinterp, field(word, 17, 16), Format::invalid);
      break;
    default:
      if (frame.gfx11() && field(word, 25, 24) == 1) {
        frame.find(Encoding::vinterp, field(word, 22, 16), Format::invalid);
      } else if (frame.gfx11() && field(word, 25, 24) == 2) {
        frame.find(Encoding::ldsdir, field(word, 21, 20), Format::invalid);
      } else {
        frame.refuse("no encoding starts with these bits");
      }
  }
}

}  // namespace kiln::simulator::isa
