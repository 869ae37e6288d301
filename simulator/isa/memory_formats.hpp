// Formats of buffers, and what image instructions take for an address.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "simulator/fault.hpp"
#include "simulator/isa/decoder.hpp"

namespace kiln::simulator {

// Buffer formats: how the numbers of typed buffer instructions, and of the FORMAT field of a buffer's or an image's
// resource, lay out and convert one element. Images have those of buffers and more.
//
// Thread-safety: any thread. Ownership: what is answered lives as long as the program.

enum class NumberType : std::uint8_t {
  invalid = 0,
  unorm,
  snorm,
  uscaled,
  sscaled,
  uint,
  sint,
  floating,
  srgb,
  exponent
};

// srgb: as unorm, but the first three channels are stored as sRGB. exponent: the fourth channel is the exponent of the
// others.
struct BufferFormat {
  NumberType type = NumberType::invalid;
  std::uint8_t channels = 0;
  std::array<std::uint8_t, 4> bits{};  // x first; x starts at the element's lowest bit, each where the last ended
  std::uint8_t block = 0;              // 1 to 7: BC1 to BC7, 8: BC6 with a sign; an element is 4 by 4 texels
};

// Nothing for 0 (invalid) and for numbers that the generation does not define.
std::optional<BufferFormat> find_buffer_format(Generation generation, unsigned number) noexcept;
// "BUF_FMT_32_FLOAT"; empty where there is none.
std::string_view buffer_format_name(Generation generation, unsigned number) noexcept;
std::optional<BufferFormat> find_image_format(Generation generation, unsigned number) noexcept;

// ImageShape: what an image instruction takes for an address, in the order of its VGPRs: offset, bias, reference to
// compare with, derivatives, coordinates, and a level of detail, a clamp of it or a mipmap's level.
//
// Thread-safety: any thread. Ownership: values.
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
  unsigned ray_pointer = 0;  // not 0: a ray: a pointer of so many words, extent, origin, direction, its inverse
};

ImageShape image_shape(Opcode opcode) noexcept;  // REQUIRES: an opcode of MIMG

unsigned coordinate_count(ImageDim dim) noexcept;                                  // with layer and sample
unsigned derivative_count(ImageDim dim) noexcept;                                  // of both directions
unsigned address_count(const ImageShape& shape, ImageDim dim, bool a16) noexcept;  // VGPRs

}  // namespace kiln::simulator
