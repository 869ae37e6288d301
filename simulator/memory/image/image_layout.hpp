// ImageLayout: where the texels of an image lie: linear, or in blocks whose texels are permuted by a swizzle mode.
//
// Blocks are those of the two cards that are simulated (their GB_ADDR_CONFIG), in the modes that Mesa chooses.
// Thread-safety and ownership: values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "simulator/memory/image/image_descriptor.hpp"

namespace kiln::simulator {

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

  // Where DCC's keys lie. The keys of a level and slice stand where the card has them, but in the order of the 256
  // bytes that they belong to: the card's own order is known to nothing but its image units.
  std::optional<std::string> set_keys(const ImageDescriptor& image, Generation generation);
  // Of the key of a texel at `address`. REQUIRES: set_keys().
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
    std::uint64_t keys = 0;  // offset in a slice's keys
  };

  void set_linear(const ImageDescriptor& image);
  void set_tiled(const ImageDescriptor& image);

  const SwizzleBlock* block_ = nullptr;  // null: linear
  std::uint64_t base_ = 0;
  std::uint64_t exclusive_ = 0;  // or-ed to offsets within a block
  std::uint64_t slice_ = 0;      // bytes
  std::uint64_t keys_ = 0;
  std::uint64_t key_slice_ = 0;
  std::uint32_t bytes_ = 0;
  unsigned small_ = 0;  // the first level in the block of small levels
  std::array<Level, most_levels> levels_{};
};

}  // namespace kiln::simulator
