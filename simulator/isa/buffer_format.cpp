#include "simulator/isa/buffer_format.hpp"

#include <string>
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

struct NamedType {
  char letter;
  NumberType type;
  std::string_view name;
};

constexpr NamedType types[] = {{'U', NumberType::unorm, "UNORM"},     {'S', NumberType::snorm, "SNORM"},
                               {'u', NumberType::uscaled, "USCALED"}, {'s', NumberType::sscaled, "SSCALED"},
                               {'I', NumberType::uint, "UINT"},       {'i', NumberType::sint, "SINT"},
                               {'F', NumberType::floating, "FLOAT"}};

struct Entry {
  std::optional<BufferFormat> format;
  std::string name;
};

std::vector<Entry> make_entries(Generation generation) {
  std::vector<Entry> entries(128);
  entries[0].name = "BUF_FMT_INVALID";
  for (const Layout& layout : layouts) {
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
  return entries;
}

const Entry* find(Generation generation, unsigned number) noexcept {
  static const std::vector<Entry> gfx11 = make_entries(Generation::gfx11);
  static const std::vector<Entry> gfx10_3 = make_entries(Generation::gfx10_3);
  const std::vector<Entry>& entries = generation == Generation::gfx11 ? gfx11 : gfx10_3;
  return number < entries.size() ? &entries[number] : nullptr;
}

}  // namespace

std::optional<BufferFormat> find_buffer_format(Generation generation, unsigned number) noexcept {
  const Entry* entry = find(generation, number);
  return entry != nullptr ? entry->format : std::nullopt;
}

std::string_view buffer_format_name(Generation generation, unsigned number) noexcept {
  const Entry* entry = find(generation, number);
  return entry != nullptr ? std::string_view(entry->name) : std::string_view();
}

}  // namespace kiln::simulator
