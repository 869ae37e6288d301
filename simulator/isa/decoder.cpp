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
