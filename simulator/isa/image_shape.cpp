#include "simulator/isa/image_shape.hpp"

#include <string_view>
#include <vector>

namespace kiln::simulator {
namespace {

// Mnemonics say it: image_sample_c_d_cl_o_g16.
ImageShape shape_of(std::string_view name) {
  ImageShape shape;
  if (name == "image_get_resinfo") {
    shape.coordinates = false;
    shape.level = true;
    return shape;
  }
  if (name == "image_load_mip" || name == "image_store_mip") shape.level = true;
  shape.gather = name.starts_with("image_gather4");
  if (!shape.gather && !name.starts_with("image_sample")) return shape;
  for (std::size_t start = name.find('_', 6); start != std::string_view::npos;) {
    const std::size_t end = name.find('_', start + 1);
    const std::string_view word = name.substr(start + 1, end == std::string_view::npos ? end : end - start - 1);
    if (word == "c") shape.compare = true;
    if (word == "cl") shape.clamp = true;
    if (word == "d" || word == "cd") shape.derivatives = true;
    if (word == "l") shape.level = true;
    if (word == "lz") shape.zero = true;
    if (word == "b") shape.bias = true;
    if (word == "o") shape.offset = true;
    if (word == "g16") shape.short_derivatives = true;
    start = end;
  }
  return shape;
}

}  // namespace

ImageShape image_shape(Opcode opcode) noexcept {
  // Never destroyed: jobs may run while the process ends.
  static const std::vector<ImageShape>& shapes = *[] {
    auto* made = new std::vector<ImageShape>(static_cast<std::size_t>(Opcode::count));
    std::vector<ImageShape>& all = *made;
    for (std::size_t i = 1; i < all.size(); ++i) {
      const OpcodeInfo& line = info(static_cast<Opcode>(i));
      if (line.encoding == Encoding::mimg) all[i] = shape_of(line.name);
    }
    return made;
  }();
  return shapes[static_cast<std::size_t>(opcode)];
}

unsigned coordinate_count(ImageDim dim) noexcept {
  constexpr std::uint8_t counts[] = {1, 2, 3, 3, 2, 3, 3, 4};
  return counts[static_cast<unsigned>(dim)];
}

unsigned derivative_count(ImageDim dim) noexcept {
  constexpr std::uint8_t counts[] = {2, 4, 6, 4, 2, 4, 4, 4};
  return counts[static_cast<unsigned>(dim)];
}

unsigned address_count(const ImageShape& shape, ImageDim dim, bool a16) noexcept {
  const unsigned coordinates = (shape.coordinates ? coordinate_count(dim) : 0) + (shape.level || shape.clamp ? 1U : 0U);
  unsigned count = (shape.offset ? 1U : 0U) + (shape.bias ? 1U : 0U) + (shape.compare ? 1U : 0U);
  count += a16 ? (coordinates + 1) / 2 : coordinates;
  if (shape.derivatives) {
    const unsigned each = derivative_count(dim) / 2;
    count += shape.short_derivatives ? (each + 1) / 2 * 2 : 2 * each;
  }
  return count;
}

}  // namespace kiln::simulator
