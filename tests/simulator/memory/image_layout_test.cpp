// Layouts of images, compared with AMD's address library.
#include "simulator/memory/image_layout.hpp"

#include <catch2/catch.hpp>
#include <cstdint>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace kiln::simulator::test {
namespace {

using U = std::uint32_t;
using W = std::uint64_t;

struct Known {
  Generation generation;
  unsigned mode;
  bool volume;
  unsigned bytes, width, height, depth, levels;
  unsigned level, x, y, z;
  W address;
};

// What Addr2ComputeSurfaceAddrFromCoord of Mesa 22.3.6 answers for the simulated cards, in the modes that it chooses
// for these sizes itself: last texels of a level.
constexpr Known known[] = {
    {Generation::gfx10_3, 22, false, 1, 722, 284, 9, 1, 0, 721, 283, 8, 0x21b799},
    {Generation::gfx10_3, 21, true, 8, 41, 1752, 49, 1, 0, 40, 1751, 48, 0x23ed120},
    {Generation::gfx10_3, 22, false, 16, 2613, 10, 9, 1, 0, 2612, 9, 8, 0x5c3220},
    {Generation::gfx10_3, 26, true, 1, 344, 243, 52, 9, 7, 1, 0, 0, 0xa001},
    {Generation::gfx10_3, 26, true, 4, 2401, 374, 26, 1, 0, 2400, 373, 25, 0x71f2b28},
    {Generation::gfx10_3, 27, true, 4, 1686, 1799, 6, 11, 9, 2, 2, 0, 0x228},
    {Generation::gfx10_3, 27, true, 16, 1817, 351, 3, 10, 8, 6, 0, 0, 0x1240},
    {Generation::gfx10_3, 27, false, 16, 2578, 341, 1, 1, 0, 2577, 340, 0, 0xf50010},
    {Generation::gfx10_3, 27, false, 8, 295, 598, 5, 3, 1, 146, 298, 4, 0xb807a0},
    {Generation::gfx10_3, 27, false, 8, 382, 158, 2, 1, 0, 381, 157, 1, 0x117058},
    {Generation::gfx10_3, 27, false, 1, 217, 212, 8, 8, 6, 2, 2, 7, 0xe8a22},
    {Generation::gfx10_3, 22, false, 2, 38, 72, 6, 2, 1, 18, 35, 5, 0x1a034},
    {Generation::gfx10_3, 26, true, 2, 2247, 69, 51, 6, 5, 69, 1, 0, 0x2900a},
    {Generation::gfx10_3, 21, true, 1, 34, 511, 67, 1, 0, 33, 510, 66, 0x1dfa31},
    {Generation::gfx10_3, 21, true, 8, 152, 271, 19, 5, 3, 18, 32, 1, 0x14450},
    {Generation::gfx10_3, 22, false, 8, 45, 1925, 5, 5, 1, 21, 961, 4, 0x60ba58},
    {Generation::gfx10_3, 21, true, 4, 2962, 262, 8, 5, 4, 184, 15, 0, 0x17428},
    {Generation::gfx10_3, 0, false, 4, 2979, 1, 9, 1, 0, 2978, 0, 8, 0x1a688},
    {Generation::gfx10_3, 21, true, 4, 35, 187, 53, 1, 0, 34, 186, 52, 0x1a3860},
    {Generation::gfx10_3, 21, true, 16, 429, 6, 23, 1, 0, 428, 5, 22, 0x1432a0},
    {Generation::gfx10_3, 0, false, 16, 458, 1, 3, 1, 0, 457, 0, 2, 0x5690},
    {Generation::gfx10_3, 0, true, 16, 466, 1, 15, 7, 6, 6, 0, 0, 0x60},
    {Generation::gfx11, 22, false, 2, 439, 15, 9, 2, 1, 218, 6, 8, 0x5b6d8},
    {Generation::gfx11, 31, false, 2, 2125, 396, 3, 8, 6, 32, 5, 2, 0x930a44},
    {Generation::gfx11, 31, false, 4, 255, 202, 7, 1, 0, 254, 201, 6, 0x19e858},
    {Generation::gfx11, 22, false, 4, 2381, 62, 6, 1, 0, 2380, 61, 5, 0x3834c8},
    {Generation::gfx11, 31, false, 8, 668, 1719, 3, 2, 1, 333, 858, 2, 0x1f64ec8},
    {Generation::gfx11, 27, false, 2, 203, 118, 2, 1, 0, 202, 117, 1, 0x1c3cc},
    {Generation::gfx11, 31, false, 16, 484, 1475, 3, 1, 0, 483, 1474, 2, 0x23d94d0},
    {Generation::gfx11, 31, false, 2, 2495, 1455, 2, 1, 0, 2494, 1454, 1, 0xef76f8},
    {Generation::gfx11, 21, true, 2, 977, 9, 57, 8, 7, 6, 0, 0, 0xa10},
    {Generation::gfx11, 21, true, 8, 39, 537, 58, 1, 0, 38, 536, 57, 0xa9fe60},
    {Generation::gfx11, 26, true, 4, 589, 87, 71, 9, 8, 1, 0, 0, 0x4004},
    {Generation::gfx11, 22, false, 16, 586, 9, 9, 1, 0, 585, 8, 8, 0x14cd10},
    {Generation::gfx11, 31, false, 4, 2681, 442, 5, 10, 1, 1339, 220, 4, 0x2627d94},
    {Generation::gfx11, 21, true, 2, 853, 10, 59, 1, 0, 852, 9, 58, 0x1ab028},
    {Generation::gfx11, 21, true, 16, 34, 340, 66, 9, 8, 0, 0, 0, 0x300},
    {Generation::gfx11, 27, false, 8, 566, 51, 6, 1, 0, 565, 50, 5, 0x1d88c8},
    {Generation::gfx11, 22, false, 8, 37, 984, 9, 1, 0, 36, 983, 8, 0x45bcd0},
    {Generation::gfx11, 27, false, 16, 427, 178, 3, 1, 0, 426, 177, 2, 0x3ebf60},
    {Generation::gfx11, 21, true, 1, 102, 326, 35, 5, 3, 11, 39, 3, 0x413f},
    {Generation::gfx11, 26, true, 4, 423, 23, 16, 1, 0, 422, 22, 15, 0xdb3f0},
    {Generation::gfx11, 26, true, 1, 588, 220, 31, 1, 0, 587, 219, 30, 0x45e2bb},
    {Generation::gfx11, 21, true, 4, 6, 167, 67, 6, 0, 5, 166, 66, 0xd71c4},
    {Generation::gfx11, 27, false, 16, 529, 120, 9, 6, 4, 32, 6, 8, 0xf11880},
    {Generation::gfx11, 0, true, 4, 533, 1, 66, 1, 0, 532, 0, 65, 0x25150},
    {Generation::gfx11, 0, true, 8, 428, 1, 67, 4, 1, 213, 0, 32, 0x36ca8},
};

ImageDescriptor described(const Known& image) {
  const U zero[8] = {};
  ImageDescriptor result(zero, image.generation);
  result.null = false;
  result.format = 1;
  result.width = image.width;
  result.height = image.height;
  result.depth = image.depth - 1;
  result.type = image.volume ? ImageType::three : ImageType::two_array;
  result.swizzle_mode = image.mode;
  result.levels = image.levels;
  return result;
}

constexpr Generation both[] = {Generation::gfx11, Generation::gfx10_3};

// The image of the tests of keys: two-dimensional, with layers.
ImageDescriptor two_dimensional(U mode, U width, U height, U levels) {
  return described({Generation::gfx11, mode, false, 4, width, height, 2, levels, 0, 0, 0, 0, 0});
}

}  // namespace

TEST_CASE("simulator image layout: each field of a descriptor is where its generation has it") {
  using Field = W (*)(const ImageDescriptor&);
  struct Place {
    unsigned word, high, low;
    Field field;
    W full, empty;  // what the bits alone make of it, and what all the others do
  };
  constexpr W high = 0xFFFF'0000'0000'0000;
  const Field base = [](const ImageDescriptor& of) -> W { return of.base; };
  const Field format = [](const ImageDescriptor& of) -> W { return of.format; };
  const Field width = [](const ImageDescriptor& of) -> W { return of.width; };
  const Field levels = [](const ImageDescriptor& of) -> W { return of.levels; };
  const Field keys = [](const ImageDescriptor& of) -> W { return of.keys; };
  const Field least = [](const ImageDescriptor& of) -> W { return of.min_lod; };
  const Field type = [](const ImageDescriptor& of) -> W { return static_cast<W>(of.type); };
  const std::vector<Place> both_have = {
      {0, 31, 0, base, 0xFF'FFFF'FF00, high | 0xFF00'0000'0000},
      {1, 7, 0, base, high | 0xFF00'0000'0000, 0xFF'FFFF'FF00},
      {2, 11, 0, width, 16'381, 4},
      {1, 31, 30, width, 4, 16'381},
      {2, 27, 14, [](const ImageDescriptor& of) -> W { return of.height; }, 16'384, 1},
      {3, 11, 0, [](const ImageDescriptor& of) -> W { return of.select; }, 0xFFF, 0},
      {3, 15, 12, [](const ImageDescriptor& of) -> W { return of.base_level; }, 15, 0},
      {3, 19, 16, [](const ImageDescriptor& of) -> W { return of.last_level; }, 15, 0},
      {3, 24, 20, [](const ImageDescriptor& of) -> W { return of.swizzle_mode; }, 31, 0},
      {3, 27, 25, [](const ImageDescriptor& of) -> W { return of.border_swizzle; }, 7, 0},
      {3, 31, 28, type, 15, 0},
      {4, 12, 0, [](const ImageDescriptor& of) -> W { return of.depth; }, 0x1FFF, 0},
      {4, 13, 0, [](const ImageDescriptor& of) -> W { return of.pitch; }, 0x3FFF, 0},
      {4, 28, 16, [](const ImageDescriptor& of) -> W { return of.base_layer; }, 0x1FFF, 0},
      {5, 3, 0, [](const ImageDescriptor& of) -> W { return of.layers_of_volume; }, 1, 0},
      {6, 21, 21, [](const ImageDescriptor& of) -> W { return of.compressed; }, 1, 0},
      {6, 31, 24, keys, 0xFF00, high | 0xFFFF'FFFF'0000},
      {7, 31, 0, keys, high | 0xFFFF'FFFF'0000, 0xFF00},
  };
  const std::vector<Place> gfx11 = {{1, 27, 20, format, 0xFF, 0},
                                    {1, 19, 16, levels, 16, 1},
                                    {5, 31, 27, least, 0x1F, 0xFE0},
                                    {6, 6, 0, least, 0xFE0, 0x1F}};
  const std::vector<Place> gfx10 = {
      {1, 28, 20, format, 0x1FF, 0}, {5, 7, 4, levels, 16, 1}, {1, 19, 8, least, 0xFFF, 0}};
  for (const Generation generation : both) {
    for (const auto* places : {&both_have, generation == Generation::gfx11 ? &gfx11 : &gfx10}) {
      for (const Place& place : *places) {
        CAPTURE(generation == Generation::gfx11, place.word, place.high, place.low);
        const U bits = (~0U >> (31 - place.high + place.low)) << place.low;
        U words[8] = {};
        words[place.word] = bits;
        CHECK(place.field(ImageDescriptor(words, generation)) == place.full);
        for (U& word : words) word = ~0U;
        words[place.word] = ~bits;
        CHECK(place.field(ImageDescriptor(words, generation)) == place.empty);
      }
    }
    U words[8] = {};
    CHECK(ImageDescriptor(words, generation).null);
    words[7] = 1;
    CHECK_FALSE(ImageDescriptor(words, generation).null);
    CHECK(ImageDescriptor(words, generation).is_null());  // no format
    words[1] = 1 << 20;
    CHECK_FALSE(ImageDescriptor(words, generation).is_null());
    CHECK_FALSE(ImageDescriptor(words, generation).is_volume());
    words[3] = 10U << 28;
    CHECK(ImageDescriptor(words, generation).is_volume());
    words[0] = 0x80;
    words[1] = 0x7F;  // below the sign
    CHECK(ImageDescriptor(words, generation).base == 0x7F00'0000'8000);
  }
}

TEST_CASE("simulator image layout: what a key of DCC says of its bytes") {
  for (unsigned key = 0; key < 256; ++key) {
    CAPTURE(key);
    Cleared young = Cleared::unknown, old = Cleared::unknown;
    if (key == 0xFF) young = old = Cleared::no;
    if (key == 0) young = old = Cleared::zero;
    if (key == 1) young = Cleared::first;
    if (key == 2 || key == 4 || key == 6) young = Cleared::ones;
    if (key == 0x10) old = Cleared::first;
    if (key == 0x20) old = Cleared::by_register;
    if (key == 0xC0) old = Cleared::ones;
    CHECK(cleared_by(static_cast<std::uint8_t>(key), Generation::gfx11) == young);
    CHECK(cleared_by(static_cast<std::uint8_t>(key), Generation::gfx10_3) == old);
  }
}

TEST_CASE("simulator image layout: keys lie in blocks, those of small levels first, and of each slice apart") {
  // A block of keys has 8 KiB for 1024 by 512 texels of 4 bytes on gfx10.3; 16 KiB for 1024 by 1024 on gfx11.
  struct Case {
    Generation generation;
    U width, height;
    W data, slice;  // bytes of a layer, and of its keys
  };
  for (const Case& one : {Case{Generation::gfx10_3, 1024, 1024, 64 << 16, 0x4000},
                          {Generation::gfx10_3, 1025, 512, 36 << 16, 0x4000},
                          {Generation::gfx10_3, 1025, 513, 45 << 16, 0x8000},
                          {Generation::gfx11, 1024, 1024, 64 << 16, 0x4000},
                          {Generation::gfx11, 1025, 1024, 72 << 16, 0x8000},
                          {Generation::gfx11, 1025, 1025, 81 << 16, 0x10000}}) {
    CAPTURE(one.width, one.height, one.slice);
    ImageDescriptor image = two_dimensional(27, one.width, one.height, 1);
    image.base = 0x30'0000;
    image.keys = 0x20'1F00;  // the low bits are not part of it
    ImageLayout layout;
    REQUIRE_FALSE(layout.set(image, 4, one.generation));
    REQUIRE_FALSE(layout.set_keys(image, one.generation));
    CHECK_FALSE(layout.has_tile_words());
    CHECK(layout.key(0, 0, layout.address(0, 0, 0, 0)) == 0x20'0000);
    CHECK(layout.key(0, 0, layout.address(0, 0, 0, 0) + 255) == 0x20'0000);
    CHECK(layout.key(0, 0, layout.address(0, 0, 0, 0) + 256) == 0x20'0001);
    CHECK(layout.key(0, 1, image.base + one.data) == 0x20'0000 + one.slice);
    CHECK(layout.key(0, 2, image.base + 2 * one.data + 512) == 0x20'0002 + 2 * one.slice);
  }
  // 2048 by 2048: from level 5 on, of 64 by 64, levels share a block of data and one of keys.
  for (const Generation generation : both) {
    const W block = generation == Generation::gfx11 ? 0x4000 : 0x2000;
    const std::vector<W> blocks =
        generation == Generation::gfx11 ? std::vector<W>{5, 4, 3, 2, 1, 0, 0} : std::vector<W>{6, 4, 3, 2, 1, 0, 0};
    const ImageDescriptor image = two_dimensional(27, 2048, 2048, 12);
    ImageLayout layout;
    REQUIRE_FALSE(layout.set(image, 4, generation));
    REQUIRE_FALSE(layout.set_keys(image, generation));
    std::set<W> seen;
    for (unsigned level = 0; level < 12; ++level) {
      CAPTURE(level, generation == Generation::gfx11);
      if (level < 5) CHECK(layout.key(level, 0, layout.address(level, 0, 0, 0)) == blocks[level] * block);
      seen.insert(layout.key(level, 0, layout.address(level, 0, 0, 0)));
      if (level >= 5) CHECK(layout.key(level, 0, layout.address(level, 0, 0, 0)) < block);
    }
    CHECK(seen.size() >= 9);  // the smallest share 256 bytes
    const W slice = (generation == Generation::gfx11 ? 9 : 14) * block;
    constexpr W data = (1 + 1 + 4 + 16 + 64 + 256) << 16;  // of the small levels, and of the others from level 4 on
    CHECK(layout.key(0, 1, data + (86 << 16)) == slice + blocks[0] * block);
    CHECK(layout.key(11, 1, data) == slice);
  }
}

TEST_CASE("simulator image layout: depth and stencil have a word for each 8 by 8 texels, the largest level first") {
  for (const U mode : {24U, 28U}) {
    ImageDescriptor image = two_dimensional(mode, 100, 50, 3);
    image.keys = 0x5'0000;
    ImageLayout layout;
    const Generation generation = mode == 24 ? Generation::gfx10_3 : Generation::gfx11;
    REQUIRE_FALSE(layout.set(image, 4, generation));
    REQUIRE_FALSE(layout.set_keys(image, generation));
    CHECK(layout.has_tile_words());
    CHECK(layout.tile_word(0, 7, 7, 0) == 0x5'0000);
    CHECK(layout.tile_word(0, 8, 7, 0) == 0x5'0004);
    CHECK(layout.tile_word(0, 7, 8, 0) == 0x5'0000 + 13 * 4);
    CHECK(layout.tile_word(0, 99, 49, 0) == 0x5'0000 + (6 * 13 + 12) * 4);
    CHECK(layout.tile_word(1, 0, 0, 0) == 0x5'0000 + 13 * 7 * 4);
    CHECK(layout.tile_word(1, 0, 8, 0) == 0x5'0000 + 13 * 7 * 4 + 7 * 4);
    CHECK(layout.tile_word(2, 0, 0, 0) == 0x5'0000 + (13 * 7 + 7 * 4) * 4);
    CHECK(layout.tile_word(0, 0, 0, 1) == 0x5'0000 + (13 * 7 + 7 * 4 + 4 * 2) * 4);
    CHECK(layout.tile_word(2, 9, 9, 2) == 0x5'0000 + (2 * 127 + 119 + 5) * 4);
  }
}

TEST_CASE(
    "simulator image layout: layouts that are not known are refused by name, and tiles of 256 bytes are told of") {
  ImageLayout layout;
  CHECK(layout.set(two_dimensional(27, 8, 8, 1), 12, Generation::gfx11) == "texels of 12 bytes");
  CHECK(layout.set(two_dimensional(3, 8, 8, 1), 4, Generation::gfx11) == "swizzle mode 3");
  const ImageDescriptor linear = two_dimensional(0, 8, 8, 1);
  REQUIRE_FALSE(layout.set(linear, 4, Generation::gfx11));
  CHECK(layout.set_keys(linear, Generation::gfx11) == "compression (DCC) with swizzle mode 0");
  ImageDescriptor volume = two_dimensional(26, 8, 8, 1);
  volume.type = ImageType::three;
  REQUIRE_FALSE(layout.set(volume, 4, Generation::gfx10_3));
  CHECK(layout.set_keys(volume, Generation::gfx10_3) == "compression (DCC) with swizzle mode 26");
  for (const auto& [bytes, width, height] : {std::tuple(1U, 16U, 16U), {2, 16, 8}, {4, 8, 8}, {8, 8, 4}, {16, 4, 4}}) {
    REQUIRE_FALSE(layout.set(two_dimensional(27, 8, 8, 1), bytes, Generation::gfx11));
    CHECK(layout.tile_width() == width);
    CHECK(layout.tile_height() == height);
  }
}

TEST_CASE("simulator image layout: rows of linear images, with a pitch of their own where one may be told") {
  struct Case {
    ImageType type;
    U levels, base_layer, pitch;
    W row, slice;  // bytes
  };
  using T = ImageType;
  for (const Case& one : {Case{T::two, 1, 0, 0, 512, 512 * 9},  // 100 texels of 4 bytes, to 256 bytes
                          {T::two, 1, 0, 126, 512, 512 * 9},    // less than the image needs
                          {T::two, 1, 0, 191, 768, 768 * 9},
                          {T::two, 1, 0, 190, 512, 512 * 9},  // 764 bytes
                          {T::two, 1, 0, 192, 512, 512 * 9},  // 772 bytes
                          {T::two, 1, 1, 191, 512, 512 * 9},
                          {T::two_array, 1, 0, 191, 512, 512 * 9},
                          {T::cube, 1, 0, 191, 512, 512 * 9},
                          {T::one, 1, 0, 191, 768, 768},
                          {T::one_array, 1, 0, 191, 512, 512},
                          {T::two, 2, 0, 191, 512, 512 * 9 + 256 * 5}}) {
    CAPTURE(static_cast<int>(one.type), one.levels, one.base_layer, one.pitch);
    ImageDescriptor image = two_dimensional(0, 100, 9, one.levels);
    image.type = one.type;
    image.base_layer = one.base_layer;
    image.pitch = one.pitch;
    image.base = 0x1000;
    ImageLayout layout;
    REQUIRE_FALSE(layout.set(image, 4, Generation::gfx10_3));
    const W first = 0x1000 + (one.levels == 2 ? 256 * 5 : 0);  // the smaller level comes first
    CHECK(layout.address(0, 0, 0, 0) == first);
    CHECK(layout.address(0, 3, 1, 0) == first + one.row + 12);
    CHECK(layout.address(0, 0, 0, 2) == first + 2 * one.slice);
  }
}

TEST_CASE("simulator image layout: agrees with AMD's address library", "[simulator][memory]") {
  for (const Known& image : known) {
    INFO("mode " << image.mode << ", " << image.bytes << " bytes, " << image.width << " x " << image.height << " x "
                 << image.depth << ", level " << image.level << " of " << image.levels);
    ImageLayout layout;
    REQUIRE_FALSE(layout.set(described(image), image.bytes, image.generation).has_value());
    CHECK(layout.address(image.level, image.x, image.y, image.z) == image.address);
    // A base within a block is exclusive-or-ed to the offset there; a linear image is moved by it.
    ImageDescriptor moved = described(image);
    moved.base = 0x7'0004'0500;
    REQUIRE_FALSE(layout.set(moved, image.bytes, image.generation).has_value());
    const W within = image.mode == 0 ? image.address + 0x500 : image.address ^ 0x500;
    if (image.mode == 0 || image.mode >= 20) {
      CHECK(layout.address(image.level, image.x, image.y, image.z) == 0x7'0004'0000 + within);
    }
  }
}

TEST_CASE("simulator image layout: nothing is left of the image that a layout was set to before") {
  ImageLayout layout;
  ImageDescriptor before = two_dimensional(27, 1000, 900, 5);
  before.base = 0x9500;
  before.keys = 0x7'7700;
  ImageDescriptor depth = two_dimensional(24, 900, 1000, 3);
  depth.keys = 0x5'0000;
  for (const Known& image : known) {
    for (const bool tiles : {false, true}) {
      INFO("mode " << image.mode << ", " << image.bytes << " bytes, " << image.width << " x " << image.height);
      REQUIRE_FALSE(layout.set(tiles ? depth : before, 4, Generation::gfx10_3));
      REQUIRE_FALSE(layout.set_keys(tiles ? depth : before, Generation::gfx10_3));
      REQUIRE_FALSE(layout.set(described(image), image.bytes, image.generation).has_value());
      CHECK(layout.address(image.level, image.x, image.y, image.z) == image.address);
    }
  }
  for (int again = 0; again < 2; ++again) {
    REQUIRE_FALSE(layout.set(depth, 4, Generation::gfx10_3));
    REQUIRE_FALSE(layout.set_keys(depth, Generation::gfx10_3));
    CHECK(layout.tile_word(0, 0, 0, 1) == 0x5'0000 + (113 * 125 + 57 * 63 + 29 * 32) * 4);
    REQUIRE_FALSE(layout.set_keys(depth, Generation::gfx10_3));
    CHECK(layout.tile_word(0, 0, 8, 1) == 0x5'0000 + (113 * 125 + 57 * 63 + 29 * 32 + 113) * 4);
  }
}

TEST_CASE("simulator image layout: no two texels of all levels share bytes", "[simulator][memory]") {
  for (const auto& [mode, volume] : {std::pair(0U, false),
                                     {22U, false},
                                     {27U, false},
                                     {31U, false},
                                     {24U, false},
                                     {28U, false},
                                     {21U, true},
                                     {25U, true},
                                     {26U, true},
                                     {27U, true},
                                     {30U, true}}) {
    for (const Generation generation : both) {
      for (const unsigned bytes : {1U, 2U, 4U, 8U, 16U}) {
        const Known image{generation, mode, volume, bytes, 70, 37, volume ? 9U : 3U, 7, 0, 0, 0, 0, 0};
        ImageLayout layout;
        ImageDescriptor descriptor = described(image);
        descriptor.base = mode >= 26 ? 0x500 : 0;  // within a block: exclusive-or-ed
        const bool there = generation == Generation::gfx11 || mode < 28;
        INFO("mode " << mode << ", " << bytes << " bytes");
        REQUIRE(layout.set(descriptor, bytes, generation).has_value() != there);
        if (!there) continue;
        std::set<W> seen;
        std::size_t texels = 0;
        for (unsigned level = 0; level < image.levels; ++level) {
          const unsigned depth = volume ? std::max(1U, image.depth >> level) : image.depth;
          for (unsigned z = 0; z < depth; ++z) {
            for (unsigned y = 0; y < std::max(1U, image.height >> level); ++y) {
              for (unsigned x = 0; x < std::max(1U, image.width >> level); ++x, ++texels) {
                const W address = layout.address(level, x, y, z);
                if (address % bytes == 0) seen.insert(address);
              }
            }
          }
        }
        CHECK(seen.size() == texels);
      }
    }
  }
}

}  // namespace kiln::simulator::test
