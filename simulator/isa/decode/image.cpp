// MIMG 111100: dword 1: srsrc[20:16] (in fours) vdata[15:8] vaddr[7:0].
// gfx11:   op[25:18] d16 17, a16 16, r128 15, glc14 dlc13 slc12 dmask[11:8] unrm7 dim[4:2] nsa0; ssamp[30:26] lwe22
//          tfe21 in dword 1. With nsa one dword follows: four more VGPRs of the address; what goes beyond stands behind
//          the last.
// gfx10.3: slc25 op[24:18] and its highest bit in 0, lwe17 tfe16 r128 15, glc13 unrm12 dmask[11:8] dlc7 dim[5:3]
//          nsa[2:1]: the dwords that follow; d16 31, a16 30, ssamp[25:21] in dword 1.
#include "simulator/isa/decode/frame.hpp"
#include "simulator/isa/image_shape.hpp"

namespace kiln::simulator::isa {
namespace {

DataType words_type(unsigned dwords) {
  constexpr DataType types[] = {DataType::none, DataType::b32, DataType::b64, DataType::b96, DataType::b128};
  return types[dwords];
}

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
  if (bit(first, 15)) frame.refuse("r128 is not simulated");
  if (gfx11 ? bit(second, 21) : bit(first, 16)) frame.refuse("tfe is not simulated");
  if (gfx11 ? bit(second, 22) : bit(first, 17)) frame.refuse("lwe is not simulated");
  if (!out.has(flag::sampler)) frame.require_zero(sampler, "a sampler", 1);
  if (out.has(flag::atomic)) {
    const bool compares = out.opcode == Opcode::image_atomic_cmpswap || out.opcode == Opcode::image_atomic_fcmpswap;
    const unsigned one = compares ? 3 : 1, two = compares ? 15 : 3;
    if ((image.mask != one && image.mask != two) || image.d16) frame.refuse("has not the components of an atomic");
  }

  take_addresses(frame, field(second, 7, 0), gfx11 ? field(first, 0, 0) : field(first, 2, 1));
  out.src[1] = frame.scalar(field(second, 20, 16) * 4, DataType::b256);
  if (out.has(flag::sampler)) out.src[2] = frame.scalar(sampler * 4, DataType::b128);
  const unsigned dwords = image.d16 ? (components(out) + 1) / 2 : components(out);
  const Operand data = frame.vector(field(second, 15, 8), words_type(dwords));
  const bool gives = !out.has(flag::store) && (!out.has(flag::atomic) || out.glc);
  if (gives) out.dst = data;
  if (out.has(flag::store | flag::atomic)) out.src[3] = data;
}

}  // namespace kiln::simulator::isa
