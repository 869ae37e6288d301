// What belongs to drawing is known by name, so that the refusal says what a program wanted.
#include "simulator/isa/decode/frame.hpp"

namespace kiln::simulator::isa {

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
