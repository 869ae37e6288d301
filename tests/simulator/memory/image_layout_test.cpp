// Layouts of images, compared with AMD's address library.
#include "simulator/memory/image_layout.hpp"

#include <catch2/catch.hpp>
#include <cstdint>
#include <set>
#include <utility>

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

}  // namespace

TEST_CASE("simulator image layout: agrees with AMD's address library", "[simulator][memory]") {
  for (const Known& image : known) {
    INFO("mode " << image.mode << ", " << image.bytes << " bytes, " << image.width << " x " << image.height << " x "
                 << image.depth << ", level " << image.level << " of " << image.levels);
    ImageLayout layout;
    REQUIRE_FALSE(layout.set(described(image), image.bytes, image.generation).has_value());
    CHECK(layout.address(image.level, image.x, image.y, image.z) == image.address);
  }
}

TEST_CASE("simulator image layout: no two texels of all levels share bytes", "[simulator][memory]") {
  for (const auto& [mode, volume] : {std::pair(0U, false),
                                     {22U, false},
                                     {27U, false},
                                     {31U, false},
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
        const bool there = generation == Generation::gfx11 || mode < 30;
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
