// ImageShape: what an image instruction takes for an address, in the order of its VGPRs: offset, bias, reference to
// compare with, derivatives, coordinates, and a level of detail, a clamp of it or a mipmap's level.
//
// Thread-safety: any thread. Ownership: values.
#pragma once

#include "simulator/isa/instruction.hpp"

namespace kiln::simulator {

struct ImageShape {
  bool offset = false;
  bool bias = false;
  bool compare = false;
  bool derivatives = false;
  bool short_derivatives = false;  // g16: two in a VGPR
  bool coordinates = true;
  bool level = false;  // of detail, or of a mipmap
  bool clamp = false;  // the least level of detail
  bool zero = false;   // level of detail 0, and no operand says so
  bool gather = false;
};

ImageShape image_shape(Opcode opcode) noexcept;  // REQUIRES: an opcode of MIMG

unsigned coordinate_count(ImageDim dim) noexcept;                                  // with layer and sample
unsigned derivative_count(ImageDim dim) noexcept;                                  // of both directions
unsigned address_count(const ImageShape& shape, ImageDim dim, bool a16) noexcept;  // VGPRs

}  // namespace kiln::simulator
