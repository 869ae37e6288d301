// Images: layouts against AMD's address library, and image instructions on a wave of their own.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

#include "simulator/isa/image_shape.hpp"
#include "simulator/memory/image_layout.hpp"
#include "tests/simulator/wave/bench.hpp"

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

struct Resource {  // of level 0, without blocks
  Generation generation = Generation::gfx11;
  W base = 0;
  unsigned format = 0;
  ImageType type = ImageType::two;
  unsigned width = 1, height = 1, last = 0, first = 0;
  unsigned mode = 0;
  unsigned base_level = 0, last_level = 0, levels = 1;
  unsigned select = 4U | 5U << 3U | 6U << 6U | 7U << 9U;
  bool compressed = false;
  W keys = 0;
};

void set_resource(Bench& bench, unsigned at, const Resource& r) {
  const bool gfx11 = r.generation == Generation::gfx11;
  const U w = r.width - 1;
  bench.sgpr(at) = static_cast<U>(r.base >> 8U);
  bench.sgpr(at + 1) = static_cast<U>(r.base >> 40U) | r.format << 20U | (w & 3U) << 30U;
  bench.sgpr(at + 2) = w >> 2U | (r.height - 1) << 14U | (gfx11 ? 0 : 1U << 31U);
  bench.sgpr(at + 3) =
      r.select | r.base_level << 12U | r.last_level << 16U | r.mode << 20U | static_cast<U>(r.type) << 28U;
  bench.sgpr(at + 4) = r.last | r.first << 16U;
  bench.sgpr(at + 5) = 0;
  bench.sgpr(at + (gfx11 ? 1 : 5)) |= (r.levels - 1) << (gfx11 ? 16U : 4U);
  bench.sgpr(at + 6) = (r.compressed ? 1U << 21U : 0) | static_cast<U>(r.keys >> 8U) << 24U;
  bench.sgpr(at + 7) = static_cast<U>(r.keys >> 16U);
}

struct Fields {
  Generation generation = Generation::gfx11;
  ImageDim dim = ImageDim::two;
  unsigned data = 10, address = 1, resource = 8, sampler = 0, mask = 15;
  bool glc = false, a16 = false, d16 = false, unnormalised = false;
  std::vector<unsigned> list = {};  // of the address, behind the first
};

std::vector<U> mimg(const char* name, const Fields& f) {
  const U number = encode::number(name, f.generation);
  const U dim = static_cast<U>(f.dim);
  U head = 0xF0000000U | f.mask << 8U, tail = f.resource / 4 << 16U | f.data << 8U | f.address;
  const U lists = static_cast<U>(f.list.size() + 3) / 4;
  if (f.generation == Generation::gfx11) {
    head |= number << 18U | (f.d16 ? 1U << 17U : 0) | (f.a16 ? 1U << 16U : 0) | (f.glc ? 1U << 14U : 0) | dim << 2U;
    head |= (f.unnormalised ? 1U << 7U : 0) | (lists != 0 ? 1U : 0U);
    tail |= f.sampler / 4 << 26U;
  } else {
    head |= (number & 127U) << 18U | number >> 7U | (f.glc ? 1U << 13U : 0) | dim << 3U | lists << 1U;
    head |= f.unnormalised ? 1U << 12U : 0;
    tail |= f.sampler / 4 << 21U | (f.a16 ? 1U << 30U : 0) | (f.d16 ? 1U << 31U : 0);
  }
  std::vector<U> words{head, tail};
  for (U i = 0; i < lists * 4; ++i) {
    if (i % 4 == 0) words.push_back(0);
    words.back() |= (i < f.list.size() ? f.list[i] : 0) << 8 * (i % 4);
  }
  return words;
}

U bits_of_float(float value) {
  U bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

constexpr Generation both[] = {Generation::gfx11, Generation::gfx10_3};

}  // namespace

TEST_CASE("simulator image layout: agrees with AMD's address library", "[simulator][wave]") {
  for (const Known& image : known) {
    INFO("mode " << image.mode << ", " << image.bytes << " bytes, " << image.width << " x " << image.height << " x "
                 << image.depth << ", level " << image.level << " of " << image.levels);
    ImageLayout layout;
    REQUIRE_FALSE(layout.set(described(image), image.bytes, image.generation).has_value());
    CHECK(layout.address(image.level, image.x, image.y, image.z) == image.address);
  }
}

TEST_CASE("simulator image layout: no two texels of all levels share bytes", "[simulator][wave]") {
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

TEST_CASE("simulator image_store, image_load: formats of both generations", "[simulator][wave]") {
  struct Case {
    unsigned gfx11, gfx10_3, bytes;
    U color[4];
    U stored[4];
    U loaded[4];
  };
  const U one = bits_of_float(1), half = bits_of_float(0.5F), less = bits_of_float(-1), two = bits_of_float(2);
  const U third = bits_of_float(85.0F / 255), word = bits_of_float(32768.0F / 65535);
  const Case cases[] = {
      {20, 20, 4, {0x89ABCDEF, 1, 2, 3}, {0x89ABCDEF}, {0x89ABCDEF, 0, 0, 1}},                            // 32_UINT
      {22, 22, 4, {less, 1, 2, 3}, {less}, {less, 0, 0, one}},                                            // 32_FLOAT
      {1, 1, 1, {bits_of_float(1.0F / 3), 0, 0, 0}, {85}, {third, 0, 0, one}},                            // 8_UNORM
      {6, 6, 1, {0xFFFFFFFE, 0, 0, 0}, {0xFE}, {0xFFFFFFFE, 0, 0, 1}},                                    // 8_SINT
      {7, 7, 2, {half, 0, 0, 0}, {0x8000}, {word, 0, 0, one}},                                            // 16_UNORM
      {13, 13, 2, {two, 0, 0, 0}, {0x4000}, {two, 0, 0, one}},                                            // 16_FLOAT
      {15, 15, 2, {less, two, 0, 0}, {0x7F81}, {less, one, 0, one}},                                      // 8_8_SNORM
      {29, 29, 4, {one, less, 0, 0}, {0xBC003C00}, {one, less, 0, one}},                                  // 16_16_FLOAT
      {30, 36, 4, {one, two, half, 0}, {0x3C0U | 0x400U << 11U | 0x1C0U << 22U}, {one, two, half, one}},  // 10_11_11
      {36, 50, 4, {one, 0, one, one}, {0xFFF003FF}, {one, 0, one, one}},                  // 2_10_10_10_UNORM
      {40, 54, 4, {1, 2, 3, 3}, {1U | 2U << 10U | 3U << 20U | 3U << 30U}, {1, 2, 3, 3}},  // 2_10_10_10_UINT
      {42, 56, 4, {0, one, less, two}, {0xFF00FF00}, {0, one, 0, one}},                   // 8_8_8_8_UNORM
      {43, 57, 4, {less, one, 0, less}, {0x81007F81}, {less, one, 0, less}},              // 8_8_8_8_SNORM
      {47, 61, 4, {1, 0xFFFFFFFF, 127, 0xFFFFFF80}, {0x807FFF01}, {1, 0xFFFFFFFF, 127, 0xFFFFFF80}},  // 8_8_8_8_SINT
      {57, 71, 8, {one, half, two, less}, {0x38003C00, 0xBC004000}, {one, half, two, less}},  // 16_16_16_16_FLOAT
      {51, 65, 8, {0, one, 0, one}, {0xFFFF0000, 0xFFFF0000}, {0, one, 0, one}},              // 16_16_16_16_UNORM
      {48, 62, 8, {7, 8, 9, 9}, {7, 8}, {7, 8, 0, 1}},                                        // 32_32_UINT
      {63, 77, 16, {one, two, half, less}, {one, two, half, less}, {one, two, half, less}},   // 32_32_32_32_FLOAT
      {68, 133, 2, {one, 0, one, 0}, {0xF81F}, {one, 0, one, one}},                           // 5_6_5_UNORM
      {67,
       132,
       4,
       {one, half, two, 0},
       {128U | 64U << 9U | 256U << 18U | 17U << 27U},
       {one, half, two, one}},                                                                      // 5_9_9_9
      {66, 130, 4, {one, 0, one, half}, {0x80FF00FF}, {one, 0, one, bits_of_float(128.0F / 255)}},  // 8_8_8_8_SRGB
  };
  for (const Generation generation : both) {
    for (const Case& one_case : cases) {
      Bench bench({generation});
      const W image = bench.memory.allocate(64 * 1024);
      Resource resource{generation, image};
      resource.format = generation == Generation::gfx11 ? one_case.gfx11 : one_case.gfx10_3;
      resource.width = 8;
      resource.height = 4;
      set_resource(bench, 8, resource);
      for (unsigned lane = 0; lane < 32; ++lane) {
        bench.vgpr(1, lane) = lane % 8;
        bench.vgpr(2, lane) = lane / 8;
        for (unsigned c = 0; c < 4; ++c) bench.vgpr(10 + c, lane) = one_case.color[c];
      }
      const Fields fields{generation};
      Fields back = fields;
      back.data = 20;
      INFO("format " << resource.format);
      REQUIRE_FALSE(bench.run(encode::join({mimg("image_store", fields), mimg("image_load", back)})));
      for (const unsigned lane : {0U, 7U, 8U, 31U}) {
        U stored[4] = {};
        std::memcpy(stored, bench.memory.host(image) + lane / 8 * 256 + lane % 8 * one_case.bytes, one_case.bytes);
        for (unsigned c = 0; c < 4; ++c) {
          CHECK(stored[c] == one_case.stored[c]);
          CHECK(bench.vgpr(20 + c, lane) == one_case.loaded[c]);
        }
      }
    }
  }
}

TEST_CASE("simulator image_load: blocks of BC1 to BC5", "[simulator][wave]") {
  for (const Generation generation : both) {
    const unsigned first = generation == Generation::gfx11 ? 109 : 169;
    struct Case {
      unsigned format;  // after BC1_UNORM
      std::vector<U> block;
      unsigned x, y;
      float color[4];
    };
    const U red_blue = 0x001FU << 16 | 0xF800U;  // red is the larger number
    const Case cases[] = {{0, {red_blue, 0xE4}, 0, 0, {1, 0, 0, 1}},
                          {0, {red_blue, 0xE4}, 1, 0, {0, 0, 1, 1}},
                          {0, {red_blue, 0xE4}, 2, 0, {2 / 3.0F, 0, 1 / 3.0F, 1}},
                          {0, {red_blue, 0xE4}, 3, 0, {1 / 3.0F, 0, 2 / 3.0F, 1}},
                          {0, {0xF800U << 16 | 0x001FU, 0xE4}, 2, 0, {0.5F, 0, 0.5F, 1}},
                          {0, {0xF800U << 16 | 0x001FU, 0xE4}, 3, 0, {0, 0, 0, 0}},
                          {0, {red_blue, 1U << 22}, 3, 2, {0, 0, 1, 1}},
                          {2, {0, 0x0F000000U, red_blue, 0}, 2, 3, {1, 0, 0, 1}},
                          {2, {0x0A, 0, 0x001F, 0}, 0, 0, {0, 0, 1, 10 / 15.0F}},
                          {4, {0x00FF | 2U << 16, 0, red_blue, 0}, 0, 0, {1, 0, 0, 6 / 7.0F}},
                          {6, {0xFF00 | 6U << 16, 0}, 0, 0, {0, 0, 0, 1}},
                          {6, {0xFF00 | 7U << 16, 0}, 0, 0, {1, 0, 0, 1}},
                          {6, {0xFF00 | 2U << 16, 0}, 0, 0, {0.2F, 0, 0, 1}},
                          {7, {0x817F, 0}, 5, 1, {1, 0, 0, 1}},
                          {7, {0x7F81 | 6U << 16, 0}, 0, 0, {-1, 0, 0, 1}},
                          {8, {0x00FF, 0, 0xFF00 | 1U << 16, 0}, 0, 0, {1, 1, 0, 1}}};
    for (const Case& one : cases) {
      Bench bench({generation});
      std::vector<U> image(4096);
      const bool half = one.block.size() == 2;
      // The block that holds (x, y): rows of 256 bytes.
      std::copy(one.block.begin(), one.block.end(), image.begin() + one.y / 4 * 64 + one.x / 4 * (half ? 2 : 4));
      Resource resource{generation, bench.memory.allocate(image), first + one.format};
      resource.width = 9;
      resource.height = 6;
      set_resource(bench, 8, resource);
      bench.set_vgpr(1, one.x);
      bench.set_vgpr(2, one.y);
      REQUIRE_FALSE(bench.run(mimg("image_load", Fields{generation})));
      INFO("format " << resource.format << " at " << one.x << " " << one.y);
      for (unsigned c = 0; c < 4; ++c) {
        float value = 0;
        std::memcpy(&value, &bench.vgpr(10 + c, 3), sizeof(value));
        CHECK(value == Approx(one.color[c]).margin(1e-6));
      }
      const auto fault = bench.run(mimg("image_store", Fields{generation}));
      REQUIRE(fault);
      CHECK(fault->reason.find("image_store: a store to its format is not simulated (2D image") == 0);
    }
  }
}

TEST_CASE("simulator image_load: layers, slices, levels, lists of registers, halves", "[simulator][wave]") {
  for (const Generation generation : both) {
    Bench bench({generation});
    std::vector<U> data(64 * 1024);
    for (U i = 0; i < data.size(); ++i) data[i] = i;
    Resource resource{generation, bench.memory.allocate(data), 20};
    resource.type = ImageType::two_array;
    resource.width = 10;
    resource.height = 6;
    resource.first = 1;
    resource.last = 3;
    resource.last_level = 1;
    resource.levels = 2;
    set_resource(bench, 8, resource);
    // Rows of 256 bytes; level 1 (3 rows) comes first in each layer of 9 rows.
    const unsigned row = 64, layer = 9 * row;
    for (unsigned lane = 0; lane < 32; ++lane) {
      bench.vgpr(30, lane) = lane % 10;      // x
      bench.vgpr(2, lane) = lane % 6;        // y
      bench.vgpr(40, lane) = lane % 4;       // layer: the last is outside
      bench.vgpr(41, lane) = lane % 3 == 2;  // level
      bench.vgpr(5, lane) = lane % 10 | (lane % 6) << 16;
      bench.vgpr(6, lane) = lane % 4 | 0xABCD0000;
    }
    Fields fields{generation, ImageDim::two_array};
    fields.mask = 1;
    fields.address = 30;
    fields.list = {2, 40};
    Fields mip = fields;
    mip.data = 11;
    mip.list = {2, 40, 41};
    Fields halves = fields;
    halves.data = 12;
    halves.address = 5;
    halves.a16 = true;
    halves.list.clear();
    bench.set_vgpr(13, 0xDDDDEEEE);
    Fields narrow = fields;
    narrow.data = 13;
    narrow.d16 = true;
    REQUIRE_FALSE(bench.run(encode::join({mimg("image_load", fields), mimg("image_load_mip", mip),
                                          mimg("image_load", halves), mimg("image_load", narrow)})));
    for (unsigned lane = 0; lane < 32; ++lane) {
      INFO("lane " << lane);
      const unsigned x = lane % 10, y = lane % 6, z = lane % 4;
      const U whole = z < 3 ? (z + 1) * layer + 3 * row + y * row + x : 0;
      CHECK(bench.vgpr(10, lane) == whole);
      CHECK(bench.vgpr(12, lane) == whole);
      CHECK(bench.vgpr(13, lane) == (0xDDDD0000 | (whole & 0xFFFF)));
      const bool small = lane % 3 == 2;
      const bool inside = z < 3 && (!small || (x < 5 && y < 3));
      CHECK(bench.vgpr(11, lane) == (!inside ? 0 : small ? (z + 1) * layer + y * row + x : whole));
    }
  }
}

TEST_CASE("simulator image_store: outside, switched-off lanes, missing components, order of channels",
          "[simulator][wave]") {
  for (const Generation generation : both) {
    Bench bench({generation});
    const std::vector<U> before(1024, 0x11111111);
    const W image = bench.memory.allocate(before);
    Resource resource{generation, image, generation == Generation::gfx11 ? 46U : 60U};  // 8_8_8_8_UINT
    resource.width = 4;
    resource.height = 2;
    resource.select = 6U | 5U << 3U | 4U << 6U | 7U << 9U;  // z y x w
    set_resource(bench, 8, resource);
    bench.set_exec(0x0000FF7F);
    for (unsigned lane = 0; lane < 32; ++lane) {
      bench.vgpr(1, lane) = lane % 4;
      bench.vgpr(2, lane) = lane / 4;
      bench.vgpr(10, lane) = 0xA0 + lane;
      bench.vgpr(11, lane) = 0xB0 + lane;
    }
    Fields fields{generation};
    fields.mask = 0b0101;  // x and z
    REQUIRE_FALSE(bench.run(mimg("image_store", fields)));
    const std::vector<U> after = bench.memory.values<U>(image, 1024);
    for (unsigned i = 0; i < 1024; ++i) {
      const unsigned x = i % 64, y = i / 64, lane = y * 4 + x;
      const bool stored = x < 4 && y < 2 && lane != 7;
      INFO("texel " << x << " " << y);
      CHECK(after[i] == (stored ? 0xB0 + lane + ((0xA0 + lane) << 16) : 0x11111111));
    }
  }
}

TEST_CASE("simulator image atomics: of 32 and 64 bits, with and without the old value", "[simulator][wave]") {
  for (const Generation generation : both) {
    Bench bench({generation});
    const W image = bench.memory.allocate(std::vector<U>(1024, 5));
    Resource narrow{generation, image, 20};
    narrow.width = 8;
    Resource broad = narrow;
    broad.format = generation == Generation::gfx11 ? 48U : 62U;  // 32_32_UINT
    broad.base += 1024;
    set_resource(bench, 8, narrow);
    set_resource(bench, 16, broad);
    for (unsigned lane = 0; lane < 32; ++lane) {
      bench.vgpr(1, lane) = lane / 4;  // four lanes each
      bench.vgpr(2, lane) = lane == 31 ? 1 : 0;
      bench.vgpr(10, lane) = 3;
      bench.vgpr(12, lane) = 100 + lane;
      bench.vgpr(14, lane) = 7;
      bench.vgpr(15, lane) = 1;
      bench.vgpr(16, lane) = 900;
      bench.vgpr(17, lane) = lane % 2 == 0 ? 17 : 16;
    }
    Fields add{generation};
    add.mask = 1;
    Fields most = add;
    most.data = 12;
    most.glc = true;
    Fields wide = add;
    wide.mask = 3;
    wide.data = 14;
    wide.resource = 16;
    Fields compare = add;
    compare.mask = 3;
    compare.data = 16;
    compare.glc = true;
    REQUIRE_FALSE(bench.run(encode::join({mimg("image_atomic_add", add), mimg("image_atomic_cmpswap", compare),
                                          mimg("image_atomic_umax", most), mimg("image_atomic_add", wide)})));
    const std::vector<U> after = bench.memory.values<U>(image, 1024);
    // 5 + 3 x 4; the first even lane swaps 17 for 900; the last column has three lanes inside.
    for (unsigned x = 0; x < 7; ++x) {
      CHECK(after[x] == 900);
      CHECK(bench.vgpr(16, 4 * x) == 17);
      CHECK(bench.vgpr(16, 4 * x + 1) == 900);
      CHECK(bench.vgpr(12, 4 * x) == 900);
      CHECK(after[256 + 2 * x] == 5 + 4 * 7);
      CHECK(after[256 + 2 * x + 1] == 5 + 4);
    }
    CHECK(after[7] == 130);  // 14, of which nobody made 900
    CHECK(bench.vgpr(12, 31) == 0);
    CHECK(bench.vgpr(16, 31) == 0);
    CHECK(after[8] == 5);
    set_resource(bench, 16, narrow);
    const auto fault = bench.run(mimg("image_atomic_add", wide));
    REQUIRE(fault);
    CHECK(fault->reason.find("image_atomic_add: an atomic of 8 bytes is not simulated (2D image of format 20") == 0);
  }
}

TEST_CASE("simulator image_get_resinfo: sizes of levels, layers, and what has none", "[simulator][wave]") {
  Bench bench;
  Resource resource{Generation::gfx11, bench.memory.allocate(4096), 20};
  resource.type = ImageType::two_array;
  resource.width = 100;
  resource.height = 50;
  resource.first = 2;
  resource.last = 6;
  resource.base_level = 1;
  resource.last_level = 3;
  resource.levels = 5;
  set_resource(bench, 8, resource);
  for (unsigned lane = 0; lane < 32; ++lane) bench.vgpr(1, lane) = lane % 4;
  Fields none;
  none.resource = 24;
  none.data = 20;
  for (unsigned i = 24; i < 32; ++i) bench.sgpr(i) = 0;
  Fields load = none;
  load.data = 30;
  Fields store = none;
  REQUIRE_FALSE(bench.run(encode::join({mimg("image_get_resinfo", Fields{}), mimg("image_get_resinfo", none),
                                        mimg("image_load", load), mimg("image_store", store)})));
  for (unsigned lane = 0; lane < 4; ++lane) {
    const bool there = lane < 3;
    CHECK(bench.vgpr(10, lane) == (there ? 100U >> (lane + 1) : 0));
    CHECK(bench.vgpr(11, lane) == (there ? 50U >> (lane + 1) : 0));
    CHECK(bench.vgpr(12, lane) == (there ? 5 : 0));
    CHECK(bench.vgpr(13, lane) == 3);
    for (unsigned c = 0; c < 4; ++c) CHECK((bench.vgpr(20 + c, lane) | bench.vgpr(30 + c, lane)) == 0);
  }
}

TEST_CASE("simulator images: what is not simulated is refused by name", "[simulator][wave]") {
  const auto reason = [](const Resource& resource, const char* name = "image_load") {
    Bench bench({resource.generation});
    set_resource(bench, 8, resource);
    const auto fault = bench.run(mimg(name, Fields{resource.generation}));
    return fault ? fault->reason : std::string("none");
  };
  Resource good{Generation::gfx11, 0, 20};
  good.width = 64;
  good.height = 32;
  Resource bad = good;
  bad.format = 121;  // BC7
  CHECK(reason(bad) == "image_load: its format is not simulated (2D image of format 121, swizzle mode 0, 64 x 32)");
  bad = good;
  bad.mode = 3;
  CHECK(reason(bad) == "image_load: swizzle mode 3 is not simulated (2D image of format 20, swizzle mode 3, 64 x 32)");
  bad = good;
  bad.type = ImageType::two_samples;
  CHECK(reason(bad).find("image_load: its type is not simulated (2D MSAA image") == 0);
  bad = good;
  bad.compressed = true;
  CHECK(reason(bad, "image_store").find("image_store: compression (DCC) with swizzle mode 0 is not simulated") == 0);
  bad = good;
  bad.type = static_cast<ImageType>(3);
  CHECK(reason(bad) == "image_load: image descriptor has type 3");
  bad = good;
  bad.format = 58;  // 32_32_32
  CHECK(reason(bad).find("image_load: texels of 12 bytes is not simulated") == 0);
  CHECK(reason(good).find("no page") == 0);
}

TEST_CASE("simulator images: blocks that DCC calls clear read so, and are filled by the first store",
          "[simulator][wave]") {
  for (const Generation generation : both) {
    Bench bench({generation});
    const W image = (bench.memory.allocate(std::vector<U>(64 * 1024, 0x77777777)) + 0xFFFF) & ~W{0xFFFF};
    const W keys = (bench.memory.allocate(64 * 1024) + 0x3FFF) & ~W{0x3FFF};
    Resource resource{generation, image, 20};
    resource.width = resource.height = 64;
    resource.mode = 27;
    resource.compressed = true;
    resource.keys = keys;
    set_resource(bench, 8, resource);
    for (unsigned lane = 0; lane < 32; ++lane) {
      bench.vgpr(1, lane) = lane;
      bench.vgpr(2, lane) = lane == 31 ? 40 : 3;
      bench.vgpr(10, lane) = 1000 + lane;
    }
    Fields fields{generation};
    fields.mask = 1;
    Fields before = fields, after = fields;
    before.data = 11;
    after.data = 12;
    REQUIRE_FALSE(bench.run(mimg("image_load", before)));
    bench.set_exec(2);
    REQUIRE_FALSE(bench.run(mimg("image_store", fields)));
    bench.set_exec(0xFFFFFFFF);
    REQUIRE_FALSE(bench.run(mimg("image_load", after)));
    for (unsigned lane = 0; lane < 32; ++lane) {
      CHECK(bench.vgpr(11, lane) == 0);
      CHECK(bench.vgpr(12, lane) == (lane == 1 ? 1001 : 0));
    }
    unsigned plain = 0, single = 0;
    for (unsigned i = 0; i < 256; ++i) plain += bench.memory.host(keys)[i] == std::byte{0xFF} ? 1 : 0;
    CHECK(plain == 1);
    // All of a block as its first texel; and a key of which nothing is known.
    const std::byte one_value{generation == Generation::gfx11 ? std::uint8_t{0x01} : std::uint8_t{0x10}};
    for (unsigned i = 0; i < 256; ++i) bench.memory.host(keys)[i] = one_value;
    REQUIRE_FALSE(bench.run(mimg("image_load", after)));
    for (unsigned lane = 0; lane < 32; ++lane) single += bench.vgpr(12, lane) == 0x77777777 ? 1 : 0;
    CHECK(single >= 24);  // but for the block that was filled
    bench.memory.host(keys)[0] = std::byte{0x33};
    for (unsigned lane = 0; lane < 32; ++lane) bench.vgpr(1, lane) = bench.vgpr(2, lane) = 0;
    const auto fault = bench.run(mimg("image_load", after));
    REQUIRE(fault);
    CHECK(fault->reason.find("image_load: compressed data (DCC key 0x33) is not simulated (2D image") == 0);
  }
}

namespace {

struct SamplerWords {
  unsigned wrap = 2;  // the last texel
  bool linear = false, unnormalised = false;
  unsigned mip = 0, compare = 0, border = 0, mode = 0, anisotropy = 0;
  float bias = 0, most = 15;
};

void set_sampler(Bench& bench, unsigned at, const SamplerWords& s) {
  const U filter = (s.linear ? 1U : 0U) | (s.anisotropy != 0 ? 2U : 0U);
  bench.sgpr(at) =
      s.wrap * 0b1001001U | s.compare << 12U | (s.unnormalised ? 1U << 15U : 0) | s.mode << 29U | s.anisotropy << 9U;
  bench.sgpr(at + 1) = static_cast<U>(s.most * 256) << 12U;
  bench.sgpr(at + 2) =
      (static_cast<U>(static_cast<int>(s.bias * 256)) & 0x3FFFU) | filter << 20U | filter << 22U | s.mip << 26U;
  bench.sgpr(at + 3) = s.border << 30U;
}

// Texel (x, y) of layer or slice z and level l: x + 10 y + 100 z + 1000 l; 4 by 4 texels, of level 1 two by two.
struct Pyramid {
  explicit Pyramid(Generation generation, ImageType type = ImageType::two, unsigned layers = 1) : bench({generation}) {
    std::vector<float> texels(16 * 1024);
    for (unsigned z = 0; z < layers; ++z) {
      for (unsigned y = 0; y < 6; ++y) {
        const unsigned level = y < 2 ? 1 : 0, size = level == 1 ? 2 : 4;
        for (unsigned x = 0; x < size; ++x) {
          texels[(z * 6 + y) * 64 + x] = static_cast<float>(x + 10 * (level == 1 ? y : y - 2) + 100 * z + 1000 * level);
        }
      }
    }
    Resource resource{generation, bench.memory.allocate(texels), 22};
    resource.type = type;
    resource.width = resource.height = 4;
    resource.last = type == ImageType::cube ? 0 : layers - 1;
    resource.last_level = 1;
    resource.levels = 2;
    set_resource(bench, 8, resource);
    fields.generation = generation;
    fields.mask = 1;
    fields.sampler = 16;
  }
  // `inputs` of all lanes, in the address's order.
  float sample(const char* name, const SamplerWords& sampler, std::vector<float> inputs) {
    set_sampler(bench, 16, sampler);
    for (unsigned i = 0; i < inputs.size(); ++i) bench.set_vgpr(1 + i, bits_of_float(inputs[i]));
    const auto fault = bench.run(mimg(name, fields));
    INFO((fault ? fault->reason : std::string()));
    REQUIRE_FALSE(fault.has_value());
    float value = 0;
    const U bits = bench.vgpr(10, 5);
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
  Bench bench;
  Fields fields;
};

}  // namespace

TEST_CASE("simulator image_sample: filters, wraps, levels", "[simulator][wave]") {
  for (const Generation generation : both) {
    Pyramid image(generation);
    SamplerWords nearest, linear;
    linear.linear = true;
    CHECK(image.sample("image_sample_lz", nearest, {0.3F, 0.6F}) == 21);
    CHECK(image.sample("image_sample_lz", nearest, {-1, 7}) == 30);
    CHECK(image.sample("image_sample_lz", linear, {0.5F, 0.25F}) == 1.5F + 5);
    CHECK(image.sample("image_sample_lz", linear, {0.375F + 1 / 16.0F, 0.125F}) == 1.25F);
    CHECK(image.sample("image_sample_lz", linear, {0, 0}) == 0);
    SamplerWords repeat = linear, mirror = nearest, border = linear, half = linear, pixels = nearest;
    repeat.wrap = 0;
    mirror.wrap = 1;
    border.wrap = 6;
    border.border = 2;
    half.wrap = 4;
    half.border = 2;
    pixels.unnormalised = true;
    CHECK(image.sample("image_sample_lz", repeat, {1, 0.125F}) == 1.5F);
    CHECK(image.sample("image_sample_lz", repeat, {-0.125F, 2.125F}) == 3);
    CHECK(image.sample("image_sample_lz", mirror, {1.2F, -0.1F}) == 3);
    CHECK(image.sample("image_sample_lz", border, {0, 0.125F}) == 0.5F);
    CHECK(image.sample("image_sample_lz", border, {-3, 0}) == 1);
    CHECK(image.sample("image_sample_lz", half, {-3, 0.125F}) == 0.5F);
    CHECK(image.sample("image_sample_lz", pixels, {2.9F, 3.1F}) == 32);
    // Levels: given, limited, biased, between two; out of derivatives.
    SamplerWords points = nearest, blended = nearest, biased = nearest, limited = nearest;
    points.mip = biased.mip = limited.mip = 1;
    blended.mip = 2;
    biased.bias = 1;
    limited.most = 0.25F;
    CHECK(image.sample("image_sample_l", nearest, {0.6F, 0.6F, 1}) == 22);
    CHECK(image.sample("image_sample_l", points, {0.6F, 0.6F, 0.4F}) == 22);
    CHECK(image.sample("image_sample_l", points, {0.6F, 0.6F, 9}) == 1011);
    CHECK(image.sample("image_sample_l", limited, {0.6F, 0.6F, 9}) == 22);
    CHECK(image.sample("image_sample_l", biased, {0.6F, 0.6F, 0}) == 1011);
    CHECK(image.sample("image_sample_l", blended, {0.6F, 0.6F, 0.25F}) == 22 * 0.75F + 1011 * 0.25F);
    CHECK(image.sample("image_sample_d", points, {0.5F, 0, 0, 0, 0.6F, 0.6F}) == 1011);
    CHECK(image.sample("image_sample_d", points, {0.25F, 0, 0, 0.3F, 0.6F, 0.6F}) == 22);
    CHECK(image.sample("image_sample_b", points, {40, 0.6F, 0.6F}) == 22);  // all lanes at one place: -infinity
    // Comparisons come before the filter.
    SamplerWords compare = linear;
    compare.compare = 1;  // less
    CHECK(image.sample("image_sample_c_lz", compare, {11.5F, 0.5F, 0.5F}) == 0.75F);
    CHECK(image.sample("image_sample_c_lz", compare, {50, 0.5F, 0.5F}) == 0);
    SamplerWords least = linear, most = linear;
    least.mode = 1;
    most.mode = 2;
    CHECK(image.sample("image_sample_lz", least, {0.5F, 0.5F}) == 11);
    CHECK(image.sample("image_sample_lz", most, {0.5F, 0.5F}) == 22);
  }
}

TEST_CASE("simulator image_sample: offsets, halves, derivatives of quads, refusals", "[simulator][wave]") {
  for (const Generation generation : both) {
    Pyramid image(generation);
    Bench& bench = image.bench;
    SamplerWords points;
    points.mip = 1;
    float packed = 0;
    const U offset = 1U | 0x3FU << 8U;  // 1, -1
    std::memcpy(&packed, &offset, sizeof(packed));
    CHECK(image.sample("image_sample_lz_o", points, {packed, 0.3F, 0.6F}) == 12);
    image.fields.a16 = true;
    const U halves = 0x34CDU | 0x38CDU << 16U;  // 0.3, 0.6
    std::memcpy(&packed, &halves, sizeof(packed));
    CHECK(image.sample("image_sample_lz", points, {packed}) == 21);
    image.fields.a16 = false;
    // Each quad one texel of level 1 apart, in its second lane or its third.
    set_sampler(bench, 16, points);
    for (unsigned lane = 0; lane < 32; ++lane) {
      const bool along = lane < 16 ? lane % 4 == 1 || lane % 4 == 3 : lane % 4 >= 2;
      const bool wide = lane % 8 < 4;
      bench.vgpr(1, lane) = bits_of_float(0.1F + (along && lane < 16 ? wide ? 0.5F : 0.25F : 0));
      bench.vgpr(2, lane) = bits_of_float(0.1F + (along && lane >= 16 ? wide ? 0.5F : 0.25F : 0));
    }
    REQUIRE_FALSE(bench.run(mimg("image_sample", image.fields)));
    for (unsigned lane = 0; lane < 32; ++lane) {
      INFO("lane " << lane);
      float value = 0;
      std::memcpy(&value, &bench.vgpr(10, lane), sizeof(value));
      CHECK((value >= 1000) == (lane % 8 < 4));
    }
    Fields lod = image.fields;
    lod.mask = 3;
    REQUIRE_FALSE(bench.run(mimg("image_get_lod", lod)));
    CHECK(bench.vgpr(10, 0) == bits_of_float(1));
    CHECK(bench.vgpr(11, 0) == bits_of_float(1));
    CHECK(bench.vgpr(10, 4) == bits_of_float(0));
    SamplerWords anisotropic, table;
    anisotropic.anisotropy = 2;
    table.wrap = 6;
    table.border = 3;
    set_sampler(bench, 16, anisotropic);
    auto fault = bench.run(mimg("image_sample", image.fields));
    REQUIRE(fault);
    CHECK(fault->reason.find("image_sample: an anisotropic filter is not simulated (2D image of format 22") == 0);
    set_sampler(bench, 16, table);
    bench.set_vgpr(1, bits_of_float(5));
    fault = bench.run(mimg("image_sample_lz", image.fields));
    REQUIRE(fault);
    CHECK(fault->reason.find("image_sample_lz: a border colour without TA_CS_BC_BASE_ADDR is not simulated") == 0);
    bench.wave.border_colors = bench.memory.allocate(std::vector<U>{1, 2, 3, 4, 5, 6, 7, 8});
    bench.sgpr(19) |= generation == Generation::gfx11 ? 1U << 18U : 1U;
    REQUIRE_FALSE(bench.run(mimg("image_sample_lz", image.fields)));
    CHECK(bench.vgpr(10, 3) == 5);
  }
}

TEST_CASE("simulator image_sample, image_gather4: layers, cubes, volumes, four texels", "[simulator][wave]") {
  for (const Generation generation : both) {
    SamplerWords nearest, linear;
    linear.linear = true;
    Pyramid array(generation, ImageType::two_array, 3);
    array.fields.dim = ImageDim::two_array;
    CHECK(array.sample("image_sample_lz", nearest, {0.3F, 0.6F, 0.9F}) == 121);
    CHECK(array.sample("image_sample_lz", nearest, {0.3F, 0.6F, -4}) == 21);
    CHECK(array.sample("image_sample_lz", nearest, {0.3F, 0.6F, 8}) == 221);
    Pyramid cube(generation, ImageType::cube, 6);
    cube.fields.dim = ImageDim::cube;
    CHECK(cube.sample("image_sample_lz", nearest, {1.3F, 1.6F, 4}) == 421);
    CHECK(cube.sample("image_sample_lz", linear, {1.5F, 1.5F, 1}) == 116.5F);
    // Over the right edge of +z lies the left column of +x.
    CHECK(cube.sample("image_sample_lz", linear, {2, 1.125F, 4}) == (403 + 0) / 2.0F);
    // At its upper right corner +y is the third.
    const float corner = (403.0F + 0 + 233) / 3;
    CHECK(cube.sample("image_sample_lz", linear, {2, 1, 4}) == Approx((403 + 0 + 233 + corner) / 4));
    Pyramid flat(generation);
    flat.fields.mask = 1;
    const float first = flat.sample("image_gather4_lz", linear, {0.5F, 0.5F});
    CHECK(first == 21);
    CHECK(flat.bench.vgpr(11, 5) == bits_of_float(22));
    CHECK(flat.bench.vgpr(12, 5) == bits_of_float(12));
    CHECK(flat.bench.vgpr(13, 5) == bits_of_float(11));
    flat.fields.mask = 8;  // what the format lacks
    CHECK(flat.sample("image_gather4_lz", linear, {0.5F, 0.5F}) == 1);
  }
}

}  // namespace kiln::simulator::test
