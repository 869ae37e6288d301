// Image instructions without a sampler, on a wave of their own: loads, stores, atomics, sizes, and what is refused.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/simulator/wave/image_bench.hpp"

namespace kiln::simulator::test {

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

TEST_CASE("simulator image_store: rounds to nearest even, whatever MODE says", "[simulator][wave]") {
  Bench bench;
  const W image = bench.memory.allocate(64 * 1024);
  Resource resource{Generation::gfx11, image, 1};  // 8_UNORM
  resource.width = 8;
  resource.height = 4;
  set_resource(bench, 8, resource);
  bench.set_vgpr(1, 0);
  bench.set_vgpr(2, 0);
  for (unsigned c = 0; c < 4; ++c) bench.set_vgpr(10 + c, bits_of_float(0.5F));
  bench.set_exec(1);
  constexpr int towards_zero = 15;
  REQUIRE_FALSE(bench.run(
      encode::join({{encode::sopp("s_round_mode", towards_zero)}, mimg("image_store", Fields{Generation::gfx11})})));
  CHECK(bench.memory.values<std::uint8_t>(image, 1)[0] == 128);  // 127.5
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
  bad.format = 100;  // none
  CHECK(reason(bad) == "image_load: its format is not simulated (2D image of format 100, swizzle mode 0, 64 x 32)");
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
  // An address in a list, behind the wave's registers and in the last of them.
  for (const unsigned far : {64U, 63U}) {
    Bench bench;
    set_resource(bench, 8, good);
    Fields fields;
    fields.list = {far};
    const auto fault = bench.run(mimg("image_load", fields));
    REQUIRE(fault);
    CHECK((fault->reason.find("v64 of 64") != std::string::npos) == (far == 64));
  }
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
    bench.vgpr(10, 1) = 5;
    REQUIRE_FALSE(bench.run(mimg("image_store", fields)));
    bench.vgpr(10, 1) = 1001;
    REQUIRE_FALSE(bench.run(mimg("image_store", fields)));  // of a block whose texels stand as they are
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

}  // namespace kiln::simulator::test
