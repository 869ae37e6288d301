// Images of every number of dimensions: sizes, coordinates, and what of a texel is read and written.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/simulator/wave/image_bench.hpp"

namespace kiln::simulator::test {

TEST_CASE("simulator image_get_resinfo: of every kind of image", "[simulator][wave]") {
  struct Case {
    ImageType type;
    unsigned first, last;
    U size[3][3];  // of levels 0, 1 and 5: width, height, layers
  };
  using T = ImageType;
  const Case cases[] = {
      {T::one, 0, 0, {{20, 1, 1}, {10, 1, 1}, {1, 1, 1}}},
      {T::two, 0, 0, {{20, 50, 1}, {10, 25, 1}, {1, 1, 1}}},
      {T::three, 0, 9, {{20, 50, 10}, {10, 25, 5}, {1, 1, 1}}},
      {T::cube, 0, 0, {{20, 50, 6}, {10, 25, 6}, {1, 1, 6}}},
      {T::cube, 6, 23, {{20, 50, 18}, {10, 25, 18}, {1, 1, 18}}},
      {T::one_array, 2, 6, {{20, 5, 5}, {10, 5, 5}, {1, 5, 5}}},  // in the second place too
      {T::two_array, 2, 6, {{20, 50, 5}, {10, 25, 5}, {1, 1, 5}}},
  };
  for (const Generation generation : both) {
    for (const Case& each : cases) {
      CAPTURE(static_cast<int>(each.type), each.last);
      Bench bench({generation});
      Resource resource{generation, bench.memory.allocate(4096), 20, each.type, 20, 50, each.last, each.first};
      resource.last_level = 5;
      resource.levels = 6;
      set_resource(bench, 8, resource);
      for (unsigned lane = 0; lane < 32; ++lane) bench.vgpr(1, lane) = lane == 2 ? 5 : lane == 3 ? 6 : lane;
      REQUIRE_FALSE(bench.run(mimg("image_get_resinfo", Fields{generation})));
      for (unsigned lane = 0; lane < 4; ++lane) {
        for (unsigned c = 0; c < 3; ++c) CHECK(bench.vgpr(10 + c, lane) == (lane < 3 ? each.size[lane][c] : 0));
        CHECK(bench.vgpr(13, lane) == 6);
      }
    }
  }
  // The slices of a volume that are reached at every level.
  Bench bench;
  Resource volume{Generation::gfx11, bench.memory.allocate(4096), 20, ImageType::three, 20, 50, 7, 3};
  volume.last_level = 1;
  volume.levels = 2;
  set_resource(bench, 8, volume);
  bench.sgpr(13) |= 1;
  for (unsigned lane = 0; lane < 32; ++lane) bench.vgpr(1, lane) = lane;
  REQUIRE_FALSE(bench.run(mimg("image_get_resinfo", Fields{})));
  for (unsigned lane = 0; lane < 2; ++lane) CHECK(bench.vgpr(12, lane) == 5);
}

TEST_CASE("simulator image_load: coordinates of every kind of image", "[simulator][wave]") {
  // Rows of 256 bytes. What stands there is its number of words from the start.
  struct Case {
    ImageType type;
    ImageDim dim;
    unsigned first, last;
    bool slices;  // of a volume, as layers
    U at[3];      // as the instruction has them
    U word;       // 0: outside
  };
  using T = ImageType;
  using D = ImageDim;
  constexpr unsigned row = 64, layer = 5 * row;
  const Case cases[] = {
      {T::one, D::one, 0, 0, false, {7, 9, 9}, 7},
      {T::one, D::one, 0, 0, false, {10, 0, 0}, 0},
      {T::one_array, D::one_array, 0, 3, false, {7, 3, 9}, 3 * row + 7},
      {T::one_array, D::one_array, 1, 3, false, {7, 2, 9}, 3 * row + 7},
      {T::one_array, D::one_array, 1, 3, false, {7, 3, 9}, 0},
      {T::two, D::two, 0, 0, false, {7, 4, 9}, 4 * row + 7},
      {T::two, D::two, 0, 0, false, {7, 5, 9}, 0},
      {T::two, D::two_array, 0, 0, false, {7, 4, 9}, 4 * row + 7},  // it has no layers
      {T::two_array, D::two_array, 1, 3, false, {7, 4, 1}, 2 * layer + 4 * row + 7},
      {T::cube, D::cube, 0, 0, false, {7, 4, 5}, 5 * layer + 4 * row + 7},
      {T::cube, D::cube, 0, 0, false, {7, 4, 6}, 0},
      {T::three, D::three, 0, 3, false, {7, 4, 3}, 3 * layer + 4 * row + 7},
      {T::three, D::three, 0, 3, false, {7, 4, 4}, 0},
      {T::three, D::three, 1, 3, false, {7, 4, 1}, layer + 4 * row + 7},  // a volume has no first layer
      {T::three, D::two_array, 1, 3, true, {7, 4, 1}, 2 * layer + 4 * row + 7},
      {T::three, D::two_array, 1, 3, true, {7, 4, 3}, 0},
  };
  for (const Generation generation : both) {
    for (const Case& each : cases) {
      CAPTURE(static_cast<int>(each.type), static_cast<int>(each.dim), each.first, each.at[0], each.at[1], each.at[2]);
      Bench bench({generation});
      std::vector<U> data(4096);
      for (U i = 0; i < data.size(); ++i) data[i] = i;
      Resource resource{generation, bench.memory.allocate(data), 20, each.type, 10, 5, each.last, each.first};
      set_resource(bench, 8, resource);
      if (each.slices) bench.sgpr(13) |= 1;
      for (unsigned c = 0; c < 3; ++c) bench.set_vgpr(1 + c, each.at[c]);
      bench.set_vgpr(5, each.at[0] | each.at[1] << 16);
      bench.set_vgpr(6, each.at[2] | 0xABCD0000);
      Fields whole{generation, each.dim};
      whole.mask = 1;
      Fields halves = whole;
      halves.a16 = true;
      halves.address = 5;
      halves.data = 11;
      REQUIRE_FALSE(bench.run(encode::join({mimg("image_load", whole), mimg("image_load", halves)})));
      CHECK(bench.vgpr(10, 3) == each.word);
      CHECK(bench.vgpr(11, 3) == each.word);
    }
  }
}

TEST_CASE("simulator images: components of the mask, as words and as halves", "[simulator][wave]") {
  for (const Generation generation : both) {
    for (unsigned mask = 1; mask < 16; ++mask) {
      CAPTURE(mask);
      Bench bench({generation});
      const W address = bench.memory.allocate(4096);
      Resource resource{generation, address, generation == Generation::gfx11 ? 55U : 69U};  // 16_16_16_16_UINT
      set_resource(bench, 8, resource);
      const std::uint16_t texel[4] = {11, 22, 33, 44};
      std::memcpy(bench.memory.host(address), texel, 8);
      for (unsigned r = 10; r < 30; ++r) bench.set_vgpr(r, 0x77777777);
      bench.set_vgpr(1, 0);
      bench.set_vgpr(2, 0);
      bench.set_exec(1);
      Fields words{generation}, halves{generation};
      words.mask = halves.mask = mask;
      halves.data = 20;
      halves.d16 = true;
      REQUIRE_FALSE(bench.run(encode::join({mimg("image_load", words), mimg("image_load", halves)})));
      unsigned next = 0;
      for (unsigned c = 0; c < 4; ++c) {
        if ((mask >> c & 1) == 0) continue;
        CHECK(bench.vgpr(10 + next, 0) == texel[c]);
        CHECK((bench.vgpr(20 + next / 2, 0) >> 16 * (next % 2) & 0xFFFF) == texel[c]);
        ++next;
      }
      for (unsigned r = next; r < 6; ++r) CHECK(bench.vgpr(10 + r, 0) == 0x77777777);
      if (next % 2 != 0) CHECK(bench.vgpr(20 + next / 2, 0) >> 16 == 0x7777);
      // A store of halves puts what is not in the mask to 0.
      bench.set_vgpr(24, 1 | 2 << 16);
      bench.set_vgpr(25, 3 | 4 << 16);
      Fields store = halves;
      store.data = 24;
      REQUIRE_FALSE(bench.run(mimg("image_store", store)));
      std::uint16_t stored[4];
      std::memcpy(stored, bench.memory.host(address), 8);
      unsigned given = 0;
      for (unsigned c = 0; c < 4; ++c) CHECK(stored[c] == ((mask >> c & 1) != 0 ? ++given : 0));
    }
  }
}

TEST_CASE("simulator images: numbers at the ends of their formats", "[simulator][wave]") {
  struct Case {
    unsigned gfx11, gfx10_3, bytes;
    U color, stored, loaded;  // of the first channel
  };
  const auto f = [](float value) { return bits_of_float(value); };
  const Case cases[] = {
      {1, 1, 1, f(2), 255, f(1)},                    // 8_UNORM
      {1, 1, 1, f(-1), 0, f(0)},                     //
      {1, 1, 1, 0x7FC00000, 0, f(0)},                // NaN
      {2, 2, 1, f(-2), 0x81, f(-1)},                 // 8_SNORM
      {2, 2, 1, f(1), 0x7F, f(1)},                   //
      {3, 3, 1, f(200), 200, f(200)},                // 8_USCALED
      {3, 3, 1, f(300), 255, f(255)},                //
      {3, 3, 1, f(-5), 0, f(0)},                     //
      {3, 3, 1, f(2.5F), 2, f(2)},                   // to even
      {3, 3, 1, f(3.5F), 4, f(4)},                   //
      {4, 4, 1, f(-200), 0x80, f(-128)},             // 8_SSCALED
      {4, 4, 1, f(200), 0x7F, f(127)},               //
      {4, 4, 1, f(-3), 0xFD, f(-3)},                 //
      {5, 5, 1, 255, 255, 255},                      // 8_UINT
      {5, 5, 1, 256, 255, 255},                      //
      {6, 6, 1, 128, 127, 127},                      // 8_SINT
      {6, 6, 1, 0xFFFFFF80, 0x80, 0xFFFFFF80},       //
      {6, 6, 1, 0xFFFFFF7F, 0x80, 0xFFFFFF80},       //
      {13, 13, 2, f(-65536), 0xFC00, 0xFF800000},    // 16_FLOAT
      {13, 13, 2, f(1 / 3.0F), 0x3555, 0x3EAAA000},  //
  };
  for (const Generation generation : both) {
    for (const Case& each : cases) {
      CAPTURE(each.gfx11, each.color);
      Bench bench({generation});
      const W address = bench.memory.allocate(4096);
      Resource resource{generation, address, generation == Generation::gfx11 ? each.gfx11 : each.gfx10_3};
      set_resource(bench, 8, resource);
      bench.set_vgpr(1, 0);
      bench.set_vgpr(2, 0);
      bench.set_vgpr(10, each.color);
      bench.set_exec(1);
      Fields store{generation};
      store.mask = 1;
      Fields load = store;
      load.data = 20;
      REQUIRE_FALSE(bench.run(encode::join({mimg("image_store", store), mimg("image_load", load)})));
      U stored = 0;
      std::memcpy(&stored, bench.memory.host(address), 4);
      CHECK(stored == each.stored);
      CHECK(bench.vgpr(20, 0) == each.loaded);
    }
  }
}

TEST_CASE("simulator images: blocks that a key makes all ones, and depth that is compressed", "[simulator][wave]") {
  Bench bench;
  const W image = (bench.memory.allocate(std::vector<U>(64 * 1024, 0x77777777)) + 0xFFFF) & ~W{0xFFFF};
  const W keys = (bench.memory.allocate(std::vector<U>(16 * 1024, 0x02040206)) + 0x3FFF) & ~W{0x3FFF};
  Resource resource{Generation::gfx11, image, 42};  // 8_8_8_8_UNORM
  resource.width = resource.height = 64;
  resource.mode = 27;
  resource.compressed = true;
  resource.keys = keys;
  set_resource(bench, 8, resource);
  bench.set_vgpr(1, 3);
  bench.set_vgpr(2, 5);
  REQUIRE_FALSE(bench.run(mimg("image_load", Fields{})));
  for (unsigned c = 0; c < 4; ++c) CHECK(bench.vgpr(10 + c, 0) == bits_of_float(1));
  resource.format = 20;  // 32_UINT, of which ones are not known
  set_resource(bench, 8, resource);
  const auto fault = bench.run(mimg("image_load", Fields{}));
  REQUIRE(fault);
  CHECK_THAT(fault->reason, Catch::Contains("compressed data (DCC key"));

  // A word a tile of 8 by 8: of depth its low four bits, of stencil bits 8 and 9 say whether the texels stand there.
  struct Case {
    unsigned format;
    U word;
    bool plain;
  };
  for (const Case& each : {Case{22, 0xF, true},
                           {22, 0x1F, true},
                           {22, 0xE, false},
                           {22, 0x7, false},
                           {5, 0x300, true},
                           {5, 0x30F, true},
                           {5, 0x200, false},
                           {5, 0x10F, false}}) {
    CAPTURE(each.format, each.word);
    Bench depth;
    const W texels = (depth.memory.allocate(std::vector<U>(64 * 1024, 0x3F3F3F3F)) + 0xFFFF) & ~W{0xFFFF};
    const W words = depth.memory.allocate(std::vector<U>(1024, each.word));
    Resource tiled{Generation::gfx11, texels, each.format};
    tiled.width = tiled.height = 64;
    tiled.mode = 24;
    tiled.compressed = true;
    tiled.keys = words;
    set_resource(depth, 8, tiled);
    depth.set_vgpr(1, 9);
    depth.set_vgpr(2, 17);
    const auto refused = depth.run(mimg("image_load", Fields{}));
    if (each.plain) {
      CHECK_FALSE(refused);
      CHECK(depth.vgpr(10, 0) == (each.format == 5 ? 0x3F : 0x3F3F3F3F));
    } else {
      REQUIRE(refused);
      CHECK_THAT(refused->reason, Catch::Contains("compressed depth or stencil (HTILE word 0x"));
    }
  }
}

}  // namespace kiln::simulator::test
