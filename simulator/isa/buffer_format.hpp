// Buffer formats: how the numbers of typed buffer instructions, and of the FORMAT field of a buffer's or an image's
// resource, lay out and convert one element. Images have those of buffers and more.
//
// Thread-safety: any thread. Ownership: what is answered lives as long as the program.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "simulator/fault.hpp"

namespace kiln::simulator {

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
  std::uint8_t block = 0;              // 1 to 5: BC1 to BC5, of which an element is 4 by 4 texels
};

// Nothing for 0 (invalid) and for numbers that the generation does not define.
std::optional<BufferFormat> find_buffer_format(Generation generation, unsigned number) noexcept;
// "BUF_FMT_32_FLOAT"; empty where there is none.
std::string_view buffer_format_name(Generation generation, unsigned number) noexcept;
std::optional<BufferFormat> find_image_format(Generation generation, unsigned number) noexcept;

}  // namespace kiln::simulator
