#include "simulator/memory/image_layout.hpp"

#include <string_view>
#include <vector>

namespace kiln::simulator {

struct SwizzleBlock {
  Generation generation;
  unsigned mode;
  unsigned texel_log2;  // bytes
  unsigned width_log2;  // texels
  unsigned height_log2;
  unsigned depth_log2;
  unsigned bytes_log2;
  struct Bit {  // of an offset: exclusive or of the coordinates' bits
    std::uint32_t x = 0, y = 0, z = 0;
  };
  std::vector<Bit> bits;

  bool thick() const { return depth_log2 != 0; }
  std::uint64_t offset(std::uint32_t x, std::uint32_t y, std::uint32_t z) const {
    std::uint32_t result = 0;
    for (std::size_t i = 0; i < bits.size(); ++i) {
      const unsigned odd = static_cast<unsigned>(__builtin_parity(x & bits[i].x)) ^
                           static_cast<unsigned>(__builtin_parity(y & bits[i].y)) ^
                           static_cast<unsigned>(__builtin_parity(z & bits[i].z));
      result |= odd << i;
    }
    return static_cast<std::uint64_t>(result) << texel_log2;
  }
};

namespace {

// "x4^y4^z1"
SwizzleBlock::Bit parse_bit(std::string_view text) {
  SwizzleBlock::Bit bit;
  for (std::size_t at = 0; at + 1 < text.size(); at += 3) {  // a letter, a digit, ^
    const std::uint32_t mask = 1U << (text[at + 1] - '0');
    (text[at] == 'x' ? bit.x : text[at] == 'y' ? bit.y : bit.z) |= mask;
  }
  return bit;
}

SwizzleBlock make_block(Generation generation, unsigned mode, unsigned texel, unsigned width, unsigned height,
                        unsigned depth, std::string_view text) {
  SwizzleBlock block{generation, mode, texel, width, height, depth, texel + width + height + depth, {}};
  while (!text.empty()) {
    const std::size_t end = text.find(' ');
    block.bits.push_back(parse_bit(text.substr(0, end)));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return block;
}

const std::vector<SwizzleBlock>& blocks() {
  // Never destroyed: jobs may run while the process ends.
  static const auto& all = *new std::vector<SwizzleBlock>{
#define KILN_SWIZZLE(generation, mode, texel, width, height, depth, bits) \
  make_block(Generation::generation, mode, texel, width, height, depth, bits),
#include "simulator/memory/swizzles.def"
#undef KILN_SWIZZLE
  };
  return all;
}

// Volumes lie in thick blocks, where the mode has them.
const SwizzleBlock* find_block(Generation generation, unsigned mode, unsigned texel_log2, bool volume) {
  const SwizzleBlock* found = nullptr;
  for (const SwizzleBlock& block : blocks()) {
    if (block.generation != generation || block.mode != mode || block.texel_log2 != texel_log2) continue;
    if (block.thick() && !volume) continue;
    if (found == nullptr || block.thick()) found = &block;
  }
  return found;
}

std::uint32_t aligned(std::uint32_t value, std::uint32_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}
std::uint32_t halved(std::uint32_t value, unsigned times) { return ((value - 1) >> times) + 1; }  // rounded up

struct Extent {
  std::uint32_t x, y;
};
// Of 256 bytes, by log2 of a texel's bytes.
constexpr Extent thin_256[] = {{16, 16}, {16, 8}, {8, 8}, {8, 4}, {4, 4}};
constexpr Extent thick_256[] = {{8, 4}, {4, 4}, {4, 4}, {4, 2}, {2, 2}};

constexpr unsigned z_order_64k = 24, render_64k = 27, z_order_256k = 28, render_256k = 31;

// The levels that fit share one block, if they are the last and not more than `most`.
struct SmallLevels {
  std::uint32_t width, height;  // of the first one, at most
  unsigned most;
};

SmallLevels small_levels(const SwizzleBlock& block) {
  SmallLevels small{1U << block.width_log2, 1U << block.height_log2, 0};
  unsigned effective = block.bytes_log2;
  if (block.thick()) {
    effective -= (block.bytes_log2 - 8) / 3;
    if (block.bytes_log2 % 3 == 0) small.height /= 2;
    if (block.bytes_log2 % 3 == 1) small.width /= 2;
  } else {
    small.width /= 2;
  }
  small.most = effective <= 11 ? 1 + (1U << (effective - 9)) : effective - 4;
  const bool z_order = block.mode == z_order_64k || block.mode == z_order_256k;
  const bool render = block.mode == render_64k || block.mode == render_256k;
  if ((z_order || (render && block.generation == Generation::gfx11)) && block.texel_log2 <= 1) {
    small.width /= thin_256[block.texel_log2].x / thin_256[2].x;
    small.height /= thin_256[block.texel_log2].y / thin_256[2].y;
  }
  return small;
}

// Where the small level that is the `index`-th from the end of its block's room starts.
Extent small_level_start(const SwizzleBlock& block, unsigned index) {
  const std::uint32_t offset = index > 6 ? 16U << index : index << 8U;
  std::uint32_t x = 0, y = 0;
  for (unsigned bit = 0; bit < 6; ++bit) {
    x |= (offset >> (9 + 2 * bit) & 1U) << bit;
    y |= (offset >> (8 + 2 * bit) & 1U) << bit;
  }
  const Extent unit = block.thick() ? thick_256[block.texel_log2] : thin_256[block.texel_log2];
  return {x * unit.x, y * unit.y};
}

unsigned log2_of(unsigned power) { return static_cast<unsigned>(__builtin_ctz(power)); }

}  // namespace

Cleared cleared_by(std::uint8_t key, Generation generation) noexcept {
  const bool gfx11 = generation == Generation::gfx11;
  switch (key) {
    case plain_key:
      return Cleared::no;
    case 0x00:
      return Cleared::zero;
    case 0x01:
      return gfx11 ? Cleared::first : Cleared::unknown;
    case 0x02:  // for each kind of component one
    case 0x04:
    case 0x06:
      return gfx11 ? Cleared::ones : Cleared::unknown;
    case 0x10:
      return gfx11 ? Cleared::unknown : Cleared::first;
    case 0x20:
      return gfx11 ? Cleared::unknown : Cleared::by_register;
    case 0xC0:
      return gfx11 ? Cleared::unknown : Cleared::ones;
    default:
      return Cleared::unknown;
  }
}

std::optional<std::string> ImageLayout::set(const ImageDescriptor& image, unsigned bytes, Generation generation) {
  bytes_ = bytes;
  levels_ = {};
  block_ = nullptr;
  exclusive_ = 0;
  if ((bytes & (bytes - 1)) != 0) return "texels of " + std::to_string(bytes) + " bytes";
  if (image.swizzle_mode == 0) {
    set_linear(image);
    return std::nullopt;
  }
  block_ = find_block(generation, image.swizzle_mode, log2_of(bytes), image.is_volume());
  if (block_ == nullptr) return "swizzle mode " + std::to_string(image.swizzle_mode);
  set_tiled(image);
  return std::nullopt;
}

// The smallest level comes first.
void ImageLayout::set_linear(const ImageDescriptor& image) {
  constexpr std::uint32_t row_bytes = 256;
  base_ = image.base;
  slice_ = 0;
  for (unsigned level = image.levels; level-- > 0;) {
    Level& out = levels_[level];
    out.offset = slice_;
    out.pitch = aligned(halved(image.width, level), row_bytes / bytes_);
    const bool own_pitch = image.levels == 1 && (image.type == ImageType::one || image.type == ImageType::two) &&
                           image.base_layer == 0 && image.pitch >= out.pitch &&
                           (image.pitch + 1) * bytes_ % row_bytes == 0;
    if (own_pitch) out.pitch = image.pitch + 1;
    const bool one_row = image.type == ImageType::one || image.type == ImageType::one_array;
    slice_ += static_cast<std::uint64_t>(out.pitch) * (one_row ? 1 : halved(image.height, level)) * bytes_;
  }
}

// The block of small levels comes first, then the others, the smallest first.
void ImageLayout::set_tiled(const ImageDescriptor& image) {
  const std::uint64_t block_bytes = std::uint64_t{1} << block_->bytes_log2;
  base_ = image.base & ~(block_bytes - 1);
  exclusive_ = image.base & (block_bytes - 1);
  slice_ = 0;
  unsigned small = image.levels;
  constexpr unsigned smallest_block = 8;  // log2: too small to be shared
  if (image.levels > 1 && block_->bytes_log2 > smallest_block) {
    const SmallLevels limits = small_levels(*block_);
    for (unsigned level = 0; level < image.levels && small == image.levels; ++level) {
      const bool fits = halved(image.width, level) <= limits.width && halved(image.height, level) <= limits.height;
      if (fits && image.levels - level <= limits.most) small = level;
    }
    for (unsigned level = small; level < image.levels; ++level) {
      const Extent start = small_level_start(*block_, limits.most - 1 - (level - small));
      levels_[level] = {0, 1, start.x, start.y, 0};
    }
    if (small != image.levels) slice_ = block_bytes;
  }
  small_ = small;
  for (unsigned level = small; level-- > 0;) {
    Level& out = levels_[level];
    out.offset = slice_;
    out.pitch = halved(halved(image.width, level), block_->width_log2);
    const std::uint32_t rows = halved(halved(image.height, level), block_->height_log2);
    slice_ += std::uint64_t{out.pitch} * rows * block_bytes;
  }
}

// As the image itself: blocks of keys, that of the small levels first.
std::optional<std::string> ImageLayout::set_keys(const ImageDescriptor& image, Generation generation) {
  tile_words_ = image.swizzle_mode == z_order_64k || image.swizzle_mode == z_order_256k;
  if (tile_words_) {
    constexpr unsigned tile_log2 = 3, word_bytes = 4;
    keys_ = image.keys;
    key_slice_ = 0;
    for (unsigned level = 0; level < image.levels; ++level) {
      levels_[level].keys = key_slice_;
      levels_[level].tile_pitch = halved(halved(image.width, level), tile_log2);
      key_slice_ +=
          std::uint64_t{levels_[level].tile_pitch} * halved(halved(image.height, level), tile_log2) * word_bytes;
    }
    return std::nullopt;
  }
  if (block_ == nullptr || block_->thick()) {
    return "compression (DCC) with swizzle mode " + std::to_string(image.swizzle_mode);
  }
  const unsigned bytes_log2 = generation == Generation::gfx11 ? 14 : 13;  // of a block of keys
  const unsigned texels_log2 = bytes_log2 + 8 - block_->texel_log2;       // that it covers
  const std::uint64_t key_bytes = std::uint64_t{1} << bytes_log2;
  keys_ = image.keys & ~(key_bytes - 1);
  key_slice_ = small_ != image.levels ? key_bytes : 0;
  for (unsigned level = small_; level-- > 0;) {
    levels_[level].keys = key_slice_;
    key_slice_ += std::uint64_t{halved(halved(image.width, level), (texels_log2 + 1) / 2)} *
                  halved(halved(image.height, level), texels_log2 / 2) * key_bytes;
  }
  return std::nullopt;
}

std::uint64_t ImageLayout::key(unsigned level, std::uint32_t z, std::uint64_t address) const noexcept {
  const Level& at = levels_[level];
  return keys_ + key_slice_ * z + at.keys + (address - base_ - slice_ * z - at.offset) / key_covers;
}

std::uint64_t ImageLayout::tile_word(unsigned level, std::uint32_t x, std::uint32_t y, std::uint32_t z) const noexcept {
  const Level& at = levels_[level];
  return keys_ + key_slice_ * z + at.keys + 4 * (std::uint64_t{y / 8} * at.tile_pitch + x / 8);
}

std::uint32_t ImageLayout::tile_width() const noexcept { return thin_256[block_->texel_log2].x; }
std::uint32_t ImageLayout::tile_height() const noexcept { return thin_256[block_->texel_log2].y; }

std::uint64_t ImageLayout::address(unsigned level, std::uint32_t x, std::uint32_t y, std::uint32_t z) const noexcept {
  const Level& at = levels_[level];
  if (block_ == nullptr) return base_ + slice_ * z + at.offset + (std::uint64_t{y} * at.pitch + x) * bytes_;
  const std::uint64_t block = std::uint64_t{y >> block_->height_log2} * at.pitch + (x >> block_->width_log2);
  return base_ + slice_ * (z >> block_->depth_log2) + at.offset + (block << block_->bytes_log2) +
         (block_->offset(x + at.x, y + at.y, z) ^ exclusive_);
}

}  // namespace kiln::simulator
