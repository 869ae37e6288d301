// Images in memory: the resource descriptor, and the address of each texel.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "simulator/fault.hpp"

namespace kiln::simulator {

// ImageDescriptor: the eight words of an image resource, taken apart.
//
// Thread-safety and ownership: values.

enum class ImageType : std::uint8_t {  // as encoded; below 8 stand the types of buffers
  one = 8,
  two,
  three,
  cube,
  one_array,
  two_array,
  two_samples,
  two_samples_array
};

struct ImageDescriptor {
  ImageDescriptor(const std::uint32_t* words, Generation generation) noexcept {
    const bool gfx11 = generation == Generation::gfx11;
    const auto bits = [words](unsigned word, unsigned high, unsigned low) {
      return words[word] >> low & ((2U << (high - low)) - 1);
    };
    base = (words[0] | static_cast<std::uint64_t>(words[1] & 0xFFU) << 32U) << 8U;
    if ((base >> 47U & 1U) != 0) base |= 0xFFFF'0000'0000'0000U;
    format = gfx11 ? bits(1, 27, 20) : bits(1, 28, 20);
    width = (bits(2, 11, 0) << 2U | bits(1, 31, 30)) + 1;
    height = bits(2, 27, 14) + 1;
    select = bits(3, 11, 0);
    base_level = bits(3, 15, 12);
    last_level = bits(3, 19, 16);
    swizzle_mode = bits(3, 24, 20);
    border_swizzle = bits(3, 27, 25);
    type = static_cast<ImageType>(bits(3, 31, 28));
    depth = bits(4, 12, 0);
    pitch = bits(4, 13, 0);
    base_layer = bits(4, 28, 16);
    layers_of_volume = bits(5, 3, 0) != 0;
    levels = (gfx11 ? bits(1, 19, 16) : bits(5, 7, 4)) + 1;
    min_lod = gfx11 ? bits(5, 31, 27) | bits(6, 6, 0) << 5U : bits(1, 19, 8);
    compressed = bits(6, 21, 21) != 0;
    keys = static_cast<std::uint64_t>(words[7]) << 16U | static_cast<std::uint64_t>(bits(6, 31, 24)) << 8U;
    if ((keys >> 47U & 1U) != 0) keys |= 0xFFFF'0000'0000'0000U;
    null = std::all_of(words, words + 8, [](std::uint32_t word) { return word == 0; });
  }

  bool is_null() const noexcept { return null || format == 0; }  // reads as zero, and takes no stores
  bool is_volume() const noexcept { return type == ImageType::three; }

  std::uint64_t base = 0;  // with the bits that are exclusive-or-ed to the offset within a block
  std::uint32_t format = 0;
  std::uint32_t width = 0;  // of level 0
  std::uint32_t height = 0;
  std::uint32_t depth = 0;  // last layer, or depth of level 0 less 1
  std::uint32_t pitch = 0;  // of some linear images: less 1
  std::uint32_t base_layer = 0;
  bool layers_of_volume = false;  // a volume whose slices `base_layer` to `depth` are reached at every level
  ImageType type = ImageType::one;
  std::uint32_t swizzle_mode = 0;
  std::uint32_t base_level = 0;
  std::uint32_t last_level = 0;
  std::uint32_t levels = 0;   // that the memory holds
  std::uint32_t min_lod = 0;  // 4.8 bits
  std::uint32_t select = 0;   // what each component is
  std::uint32_t border_swizzle = 0;
  bool compressed = false;  // by DCC: a byte at `keys` says for each 256 bytes what they hold
  std::uint64_t keys = 0;
  bool null = false;
};

// ImageLayout: where the texels of an image lie: linear, or in blocks whose texels are permuted by a swizzle mode.
//
// Blocks are those of the two cards that are simulated (their GB_ADDR_CONFIG), in the modes that Mesa chooses.
// Thread-safety and ownership: values.

// What a key of DCC says of its 256 bytes.
enum class Cleared : std::uint8_t {
  unknown = 0,
  no,          // they are as they stand
  zero,        // all bits
  ones,        // every component is 1
  first,       // all texels are as the first one
  by_register  // all texels are as the colour of CB_COLOR0_CLEAR_WORD0 and 1
};
Cleared cleared_by(std::uint8_t key, Generation generation) noexcept;
inline constexpr std::uint8_t plain_key = 0xFF;  // Cleared::no
inline constexpr unsigned key_covers = 256;      // bytes

struct SwizzleBlock;  // image_layout.cpp

class ImageLayout {
 public:
  // `bytes`: of a texel. An answer says why there is no layout.
  std::optional<std::string> set(const ImageDescriptor& image, unsigned bytes, Generation generation);

  // Where DCC's keys lie, or of depth and stencil HTILE's words. The keys of a level and slice stand where the card has
  // them, but in the order of the 256 bytes that they belong to: the card's own order is known to nothing but its image
  // units.
  std::optional<std::string> set_keys(const ImageDescriptor& image, Generation generation);
  // Whether the image's data are compressed as depth and stencil are: a word of HTILE for each 8 by 8 texels.
  bool has_tile_words() const noexcept { return tile_words_; }
  // REQUIRES: set_keys(), has_tile_words().
  std::uint64_t tile_word(unsigned level, std::uint32_t x, std::uint32_t y, std::uint32_t z) const noexcept;
  // Of the key of a texel at `address`. REQUIRES: set_keys(), not has_tile_words().
  std::uint64_t key(unsigned level, std::uint32_t z, std::uint64_t address) const noexcept;

  // Texels of 256 bytes. REQUIRES: set_keys().
  std::uint32_t tile_width() const noexcept;
  std::uint32_t tile_height() const noexcept;

  // Of the texel's first byte. REQUIRES: set(); the coordinates lie within the level; z counts all layers or slices.
  std::uint64_t address(unsigned level, std::uint32_t x, std::uint32_t y, std::uint32_t z) const noexcept;

 private:
  static constexpr unsigned most_levels = 16;
  struct Level {
    std::uint64_t offset = 0;  // in a slice, or in a slab of slices that blocks hold together
    std::uint32_t pitch = 0;   // texels; of a tiled image blocks
    std::uint32_t x = 0;       // where the level starts in the block of small levels
    std::uint32_t y = 0;
    std::uint64_t keys = 0;        // offset in a slice's keys
    std::uint32_t tile_pitch = 0;  // words of HTILE
  };

  void set_linear(const ImageDescriptor& image);
  void set_tiled(const ImageDescriptor& image);

  const SwizzleBlock* block_ = nullptr;  // null: linear
  std::uint64_t base_ = 0;
  std::uint64_t exclusive_ = 0;  // or-ed to offsets within a block
  std::uint64_t slice_ = 0;      // bytes
  std::uint64_t keys_ = 0;
  std::uint64_t key_slice_ = 0;
  bool tile_words_ = false;
  std::uint32_t bytes_ = 0;
  unsigned small_ = 0;  // the first level in the block of small levels
  std::array<Level, most_levels> levels_{};
};

}  // namespace kiln::simulator
