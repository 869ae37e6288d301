#include "simulator/isa/memory_formats.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace kiln::simulator {
namespace {

// Formats of one layout have consecutive numbers. Types: U unorm, S snorm, u uscaled, s sscaled, I uint, i sint, F
// float.
struct Layout {
  std::string_view name;  // highest bits first, so that x is the last
  BufferFormat shape;
  unsigned gfx11;
  std::string_view gfx11_types;
  unsigned gfx10_3;
  std::string_view gfx10_3_types;
};

constexpr BufferFormat shape(std::uint8_t x, std::uint8_t y = 0, std::uint8_t z = 0, std::uint8_t w = 0) {
  const int channels = 1 + (y != 0 ? 1 : 0) + (z != 0 ? 1 : 0) + (w != 0 ? 1 : 0);
  return {NumberType::invalid, static_cast<std::uint8_t>(channels), {x, y, z, w}};
}

constexpr BufferFormat block(std::uint8_t kind) {
  const bool half = kind == 1 || kind == 4;  // of 16 bytes
  BufferFormat format = half ? shape(32, 32) : shape(32, 32, 32, 32);
  format.block = kind;
  return format;
}

constexpr Layout layouts[] = {
    {"8", shape(8), 1, "USusIi", 1, "USusIi"},
    {"16", shape(16), 7, "USusIiF", 7, "USusIiF"},
    {"8_8", shape(8, 8), 14, "USusIi", 14, "USusIi"},
    {"32", shape(32), 20, "IiF", 20, "IiF"},
    {"16_16", shape(16, 16), 23, "USusIiF", 23, "USusIiF"},
    {"10_11_11", shape(11, 11, 10), 30, "F", 30, "USusIiF"},
    {"11_11_10", shape(10, 11, 11), 31, "F", 37, "USusIiF"},
    {"10_10_10_2", shape(2, 10, 10, 10), 32, "USIi", 44, "USusIi"},
    {"2_10_10_10", shape(10, 10, 10, 2), 36, "USusIi", 50, "USusIi"},
    {"8_8_8_8", shape(8, 8, 8, 8), 42, "USusIi", 56, "USusIi"},
    {"32_32", shape(32, 32), 48, "IiF", 62, "IiF"},
    {"16_16_16_16", shape(16, 16, 16, 16), 51, "USusIiF", 65, "USusIiF"},
    {"32_32_32", shape(32, 32, 32), 58, "IiF", 72, "IiF"},
    {"32_32_32_32", shape(32, 32, 32, 32), 61, "IiF", 75, "IiF"},
};

// Of images alone. G: srgb, E: a common exponent.
constexpr Layout image_layouts[] = {
    {"8", shape(8), 64, "G", 128, "G"},
    {"8_8", shape(8, 8), 65, "G", 129, "G"},
    {"8_8_8_8", shape(8, 8, 8, 8), 66, "G", 130, "G"},
    {"5_9_9_9", shape(9, 9, 9, 5), 67, "E", 132, "E"},
    {"5_6_5", shape(5, 6, 5), 68, "U", 133, "U"},
    {"1_5_5_5", shape(5, 5, 5, 1), 69, "U", 134, "U"},
    {"5_5_5_1", shape(1, 5, 5, 5), 70, "U", 135, "U"},
    {"4_4_4_4", shape(4, 4, 4, 4), 71, "U", 136, "U"},
    {"4_4", shape(4, 4), 72, "U", 137, "U"},
    {"BC1", block(1), 109, "UG", 169, "UG"},
    {"BC2", block(2), 111, "UG", 171, "UG"},
    {"BC3", block(3), 113, "UG", 173, "UG"},
    {"BC4", block(4), 115, "US", 175, "US"},
    {"BC5", block(5), 117, "US", 177, "US"},
    {"BC6_UNSIGNED", block(6), 119, "F", 179, "F"},
    {"BC6", block(8), 120, "F", 180, "F"},
    {"BC7", block(7), 121, "UG", 181, "UG"},
};

struct NamedType {
  char letter;
  NumberType type;
  std::string_view name;
};

constexpr NamedType types[] = {
    {'U', NumberType::unorm, "UNORM"},     {'S', NumberType::snorm, "SNORM"}, {'u', NumberType::uscaled, "USCALED"},
    {'s', NumberType::sscaled, "SSCALED"}, {'I', NumberType::uint, "UINT"},   {'i', NumberType::sint, "SINT"},
    {'F', NumberType::floating, "FLOAT"},  {'G', NumberType::srgb, "SRGB"},   {'E', NumberType::exponent, "FLOAT"}};

struct Entry {
  std::optional<BufferFormat> format;
  std::string name;
};

void add_layout(std::vector<Entry>& entries, const Layout& layout, Generation generation) {
  const bool gfx11 = generation == Generation::gfx11;
  unsigned number = gfx11 ? layout.gfx11 : layout.gfx10_3;
  for (const char letter : gfx11 ? layout.gfx11_types : layout.gfx10_3_types) {
    for (const NamedType& named : types) {
      if (named.letter != letter) continue;
      Entry& entry = entries[number];
      entry.format = layout.shape;
      entry.format->type = named.type;
      entry.name = "BUF_FMT_" + std::string(layout.name) + "_" + std::string(named.name);
    }
    ++number;
  }
}

struct Tables {
  std::vector<Entry> buffers = std::vector<Entry>(128);
  std::vector<Entry> images;
};

Tables make_tables(Generation generation) {
  Tables tables;
  tables.buffers[0].name = "BUF_FMT_INVALID";
  for (const Layout& layout : layouts) add_layout(tables.buffers, layout, generation);
  tables.images = tables.buffers;
  tables.images.resize(512);
  for (const Layout& layout : image_layouts) add_layout(tables.images, layout, generation);
  return tables;
}

const Tables& tables_of(Generation generation) noexcept {
  // Never destroyed: jobs may run while the process ends.
  static const Tables& gfx11 = *new Tables(make_tables(Generation::gfx11));
  static const Tables& gfx10_3 = *new Tables(make_tables(Generation::gfx10_3));
  return generation == Generation::gfx11 ? gfx11 : gfx10_3;
}

}  // namespace

std::optional<BufferFormat> find_buffer_format(Generation generation, unsigned number) noexcept {
  const std::vector<Entry>& entries = tables_of(generation).buffers;
  return number < entries.size() ? entries[number].format : std::nullopt;
}

std::string_view buffer_format_name(Generation generation, unsigned number) noexcept {
  const std::vector<Entry>& entries = tables_of(generation).buffers;
  return number < entries.size() ? std::string_view(entries[number].name) : std::string_view();
}

std::optional<BufferFormat> find_image_format(Generation generation, unsigned number) noexcept {
  const std::vector<Entry>& entries = tables_of(generation).images;
  return number < entries.size() ? entries[number].format : std::nullopt;
}

namespace {

// Mnemonics say it: image_sample_c_d_cl_o_g16.
ImageShape shape_of(std::string_view name) {
  ImageShape shape;
  if (name == "image_get_resinfo") {
    shape.coordinates = false;
    shape.level = true;
    return shape;
  }
  if (name.ends_with("intersect_ray")) shape.ray_pointer = name.starts_with("image_bvh64") ? 2 : 1;
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
  if (shape.ray_pointer != 0) return shape.ray_pointer + (a16 ? 7 : 10);
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
