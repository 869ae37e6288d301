// Buffer instructions: descriptors, range checks, swizzle, formatted elements.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>

#include "tests/simulator/wave/bench.hpp"

namespace kiln::simulator::test {
namespace {

using encode::v;
using U = std::uint32_t;
using W = std::uint64_t;

}  // namespace

TEST_CASE("simulator buffers: addresses, range checks and swizzle", "[simulator][wave]") {
  std::vector<U> data(1024);
  for (U i = 0; i < data.size(); ++i) data[i] = 0x81000000U + i * 0x00010203U;
  Bench bench;
  const W address = bench.memory.allocate(data);
  for (unsigned lane = 0; lane < 32; ++lane) {
    bench.vgpr(1, lane) = lane * 4;
    bench.vgpr(2, lane) = lane;      // index
    bench.vgpr(3, lane) = lane % 4;  // offset within the structure
  }
  bench.set_buffer(8, address, 0, 100, encode::raw_buffer);
  bench.set_buffer(12, address, 16, 20, encode::indexed_buffer);
  bench.sgpr(20) = 8;
  REQUIRE_FALSE(bench.run(encode::join({encode::mubuf("buffer_load_b32", 4, 1, 8, 128, 0, false, true),
                                        encode::mubuf("buffer_load_b64", 6, 1, 8, 20, 4, false, true),
                                        encode::mubuf("buffer_load_b32", 8, 2, 12, 128, 4, true, false),
                                        encode::mubuf("buffer_load_u8", 9, 2, 12, 128, 0, true, true)})));
  for (unsigned lane = 0; lane < 32; ++lane) {
    INFO("lane " << lane);
    const auto word = [&](unsigned byte, unsigned limit) { return byte + 4 <= limit ? data[byte / 4] : 0; };
    CHECK(bench.vgpr(4, lane) == word(lane * 4, 100));
    CHECK(bench.vgpr(6, lane) == word(lane * 4 + 12, 100));
    CHECK(bench.vgpr(7, lane) == word(lane * 4 + 16, 100));
    CHECK(bench.vgpr(8, lane) == (lane < 20 ? data[lane * 4 + 1] : 0));
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(data.data());
    CHECK(bench.vgpr(9, lane) == (lane < 20 ? bytes[lane * 16 + lane % 4] : 0));
  }

  // Swizzled as scratch is: words of one offset lie side by side for 32 lanes.
  const W swizzled = bench.memory.allocate(8192);
  bench.set_buffer(8, swizzled | W{1} << 62, 0, 8192, 2U << 21 | 1U << 23 | 2U << 28);
  bench.set_vgpr(1, 12);
  REQUIRE_FALSE(bench.run(encode::join({encode::mubuf("buffer_store_b32", 2, 1, 8, 128, 8, false, true),
                                        encode::mubuf("buffer_load_b32", 5, 1, 8, 128, 8, false, true)})));
  const std::vector<U> out = bench.memory.values<U>(swizzled, 2048);
  for (unsigned lane = 0; lane < 32; ++lane) {
    CHECK(out[20 / 4 * 32 + lane] == lane);
    CHECK(bench.vgpr(5, lane) == lane);
  }

  // Without an index nothing is swizzled, whatever the descriptor says: that of constants beside the code has the upper
  // word of a program counter.
  for (unsigned lane = 0; lane < 32; ++lane) bench.vgpr(1, lane) = lane * 4;
  bench.set_buffer(8, address | W{0xFFFF} << 48, 0, 100, encode::raw_buffer);
  REQUIRE_FALSE(bench.run(encode::mubuf("buffer_load_b32", 4, 1, 8, 128, 0, false, true)));
  for (unsigned lane = 0; lane < 32; ++lane) CHECK(bench.vgpr(4, lane) == (lane < 25 ? data[lane] : 0));

  // Lanes side by side of which some, one or none lie inside; the scalar offset counts too.
  for (unsigned lane = 0; lane < 32; ++lane) bench.vgpr(1, lane) = 128 + lane * 4;
  bench.sgpr(20) = 8;
  for (const unsigned records : {128U, 132U, 135U, 136U, 200U, 255U, 256U, 263U, 264U, 268U}) {
    INFO(records << " bytes");
    bench.set_buffer(8, address, 0, records, encode::raw_buffer);
    REQUIRE_FALSE(bench.run(encode::join({encode::mubuf("buffer_load_b32", 4, 1, 8, 128, 0, false, true),
                                          encode::mubuf("buffer_load_b32", 5, 1, 8, 20, 0, false, true),
                                          encode::mubuf("buffer_load_b32", 6, 1, 8, 128, 4, false, true)})));
    for (unsigned lane = 0; lane < 32; ++lane) {
      const auto word = [&](unsigned byte) { return byte + 4 <= records ? data[byte / 4] : 0; };
      CHECK(bench.vgpr(4, lane) == word(128 + lane * 4));
      CHECK(bench.vgpr(5, lane) == word(136 + lane * 4));
      CHECK(bench.vgpr(6, lane) == word(132 + lane * 4));
    }
  }

  // What lies side by side in the registers does not in memory: indices, strides by the lane's number, other checks.
  for (unsigned lane = 0; lane < 32; ++lane) bench.vgpr(1, lane) = lane * 4;
  bench.set_buffer(8, address, 16, 1000, encode::indexed_buffer);
  bench.set_buffer(12, address, 8, 4096, encode::raw_buffer | 1U << 23);
  bench.set_buffer(16, address, 16, 1000, 0);
  bench.set_buffer(24, address, 0, 1, 2U << 28);
  bench.set_buffer(28, address, 0, 4096, encode::raw_buffer);
  REQUIRE_FALSE(bench.run(encode::join({encode::mubuf("buffer_load_b32", 4, 1, 8, 128, 0, true, false),
                                        encode::mubuf("buffer_load_b32", 5, 1, 12, 128, 0, false, true),
                                        encode::mubuf("buffer_load_b32", 6, 1, 16, 128, 0, false, true),
                                        encode::mubuf("buffer_load_b32", 7, 1, 24, 128, 0, false, true),
                                        encode::mubuf("buffer_load_b32", 8, 1, 28, 128, 8, false, false)})));
  for (unsigned lane = 0; lane < 32; ++lane) {
    INFO("lane " << lane);
    CHECK(bench.vgpr(4, lane) == data[lane * 16 % 1024]);
    CHECK(bench.vgpr(5, lane) == data[lane * 3]);
    CHECK(bench.vgpr(6, lane) == (lane < 4 ? data[lane] : 0));
    CHECK(bench.vgpr(7, lane) == data[lane]);
    CHECK(bench.vgpr(8, lane) == data[2]);
  }

  // Atomics beyond the end do nothing.
  bench.set_buffer(8, address, 0, 64, encode::raw_buffer);
  for (unsigned lane = 0; lane < 32; ++lane) bench.vgpr(1, lane) = lane * 4;
  bench.set_vgpr(10, 1);
  REQUIRE_FALSE(bench.run(encode::mubuf("buffer_atomic_add_u32", 10, 1, 8, 128, 0, false, true, true)));
  for (unsigned lane = 0; lane < 32; ++lane) {
    CHECK(bench.vgpr(10, lane) == (lane < 16 ? data[lane] : 0));
    CHECK(bench.memory.values<U>(address, 32)[lane] == data[lane] + (lane < 16 ? 1 : 0));
  }
}

TEST_CASE("simulator buffers: formatted elements", "[simulator][wave]") {
  constexpr U identity = 4 | 5 << 3 | 6 << 6 | 7 << 9, swapped = 6 | 5 << 3 | 4 << 6 | 1 << 9;
  constexpr U rgba8_unorm = 42, rgba16_float = 57, r32_uint = 20, rg16_sint = 28;
  Bench bench;
  const W address = bench.memory.allocate(4096);
  const U texel = 0xFF804000;
  const std::uint16_t halves[4] = {0x3C00, 0xC000, 0x3800, 0x0001};
  std::memcpy(bench.memory.host(address), &texel, 4);
  std::memcpy(bench.memory.host(address + 16), halves, 8);
  bench.set_vgpr(1, 0);
  bench.set_buffer(8, address, 4, 4, identity | rgba8_unorm << 12);
  bench.set_buffer(12, address, 4, 4, swapped | rgba8_unorm << 12);
  bench.set_buffer(16, address + 16, 8, 1, identity | rgba16_float << 12);
  bench.set_buffer(20, address + 64, 4, 4, identity | r32_uint << 12);
  bench.set_buffer(24, address + 80, 4, 4, identity | rg16_sint << 12);
  bench.set_vgpr(30, 0xFFFF8001);
  bench.set_vgpr(31, 77);
  REQUIRE_FALSE(bench.run(encode::join({encode::mubuf("buffer_load_format_xyzw", 4, 1, 8, 128, 0, true, false),
                                        encode::mubuf("buffer_load_format_xyzw", 8, 1, 12, 128, 0, true, false),
                                        encode::mubuf("buffer_load_format_xyzw", 12, 1, 16, 128, 0, true, false),
                                        encode::mubuf("buffer_store_format_x", 31, 1, 20, 128, 0, true, false),
                                        encode::mubuf("buffer_load_format_xy", 16, 1, 20, 128, 0, true, false),
                                        encode::mubuf("buffer_store_format_xy", 30, 1, 24, 128, 0, true, false),
                                        encode::mubuf("buffer_load_format_xyzw", 20, 1, 24, 128, 0, true, false)})));
  const auto number = [&](unsigned r) {
    float value;
    std::memcpy(&value, &bench.vgpr(r, 0), 4);
    return value;
  };
  CHECK(number(4) == 0.0F);
  CHECK(number(5) == 64.0F / 255.0F);
  CHECK(number(6) == 128.0F / 255.0F);
  CHECK(number(7) == 1.0F);
  CHECK(number(8) == 128.0F / 255.0F);
  CHECK(number(10) == 0.0F);
  CHECK(number(11) == 1.0F);
  CHECK(number(12) == 1.0F);
  CHECK(number(13) == -2.0F);
  CHECK(number(14) == 0.5F);
  CHECK(number(15) == 0x1p-24F);
  CHECK(bench.vgpr(16, 0) == 77);
  CHECK(bench.vgpr(17, 0) == 0);
  CHECK(bench.vgpr(20, 0) == 0xFFFF8001);
  CHECK(bench.vgpr(21, 0) == 77);
  CHECK(bench.vgpr(22, 0) == 0);
  CHECK(bench.vgpr(23, 0) == 1);

  // A store undoes the selection: the first component is what a load takes from the third channel.
  for (unsigned c = 0; c < 4; ++c) {
    const float component = c == 0 ? 1.0F : 0.0F;
    std::memcpy(&bench.vgpr(4 + c, 0), &component, 4);
  }
  bench.set_exec(1);
  REQUIRE_FALSE(bench.run(encode::mubuf("buffer_store_format_xyzw", 4, 1, 12, 128, 0, true, false)));
  CHECK(bench.memory.values<U>(address, 1)[0] == 0x00FF0000);
  // Format 0 is no resource.
  bench.set_buffer(8, address, 4, 4, identity);
  REQUIRE_FALSE(bench.run(encode::join({encode::mubuf("buffer_store_format_x", 31, 1, 8, 128, 0, true, false),
                                        encode::mubuf("buffer_load_format_xyzw", 8, 1, 8, 128, 0, true, false)})));
  CHECK(bench.memory.values<U>(address, 1)[0] == 0x00FF0000);
  CHECK(bench.vgpr(8, 0) == 0);
  CHECK(bench.vgpr(11, 0) == 0);
}

TEST_CASE("simulator buffers: formats are converted to nearest even, whatever MODE says", "[simulator][wave]") {
  constexpr U identity = 4 | 5 << 3 | 6 << 6 | 7 << 9, r8_unorm = 1;
  constexpr int towards_zero = 15;
  Bench bench;
  const W address = bench.memory.allocate(4096);
  bench.set_buffer(8, address, 4, 4, identity | r8_unorm << 12);
  bench.set_vgpr(1, 0);
  bench.set_vgpr(2, 0x3F000000);  // 0.5: 127.5 of 255
  bench.set_vgpr(3, 0x33C00000);  // 1.5 times 2^-24
  bench.set_exec(1);
  REQUIRE_FALSE(bench.run(encode::join({{encode::sopp("s_round_mode", towards_zero)},
                                        encode::mubuf("buffer_store_format_x", 2, 1, 8, 128, 0, true, false),
                                        {encode::vop2("v_add_f32", 4, 242, 3)}})));
  CHECK(bench.memory.values<std::uint8_t>(address, 1)[0] == 128);
  CHECK(bench.vgpr(4, 0) == 0x3F800000);  // MODE holds again: 1 + 1.5 times 2^-24 goes down to 1
}

TEST_CASE("simulator buffers: formatted elements as halves", "[simulator][wave]") {
  constexpr U identity = 4 | 5 << 3 | 6 << 6 | 7 << 9, rgba8_unorm = 42;
  Bench bench({.wave = WaveSize::wave64});
  const W address = bench.memory.allocate(std::vector<U>{0x80FF00FF, 0, 0, 0});
  bench.set_buffer(8, address, 0, 16, encode::raw_buffer | rgba8_unorm << 12 | identity);
  for (unsigned r = 4; r < 20; ++r) bench.set_vgpr(r, 0xAAAA5555);
  bench.set_vgpr(20, 0x38003C00);  // 1 and 0.5
  bench.set_vgpr(21, 0x3C000000);
  REQUIRE_FALSE(
      bench.run(encode::join({encode::mubuf("buffer_load_d16_format_xyzw", 4, 1, 8, 128, 0, false, false),
                              encode::mubuf("buffer_load_d16_format_x", 6, 1, 8, 128, 0, false, false),
                              encode::mubuf("buffer_load_d16_hi_format_x", 7, 1, 8, 128, 0, false, false),
                              encode::mubuf("buffer_store_d16_format_xyzw", 20, 1, 8, 128, 4, false, false),
                              encode::mubuf("buffer_store_d16_format_x", 20, 1, 8, 128, 8, false, false),
                              encode::mubuf("buffer_store_d16_hi_format_x", 20, 1, 8, 128, 12, false, false)})));
  for (const unsigned lane : {0U, 31U, 32U, 63U}) {
    CHECK(bench.vgpr(4, lane) == 0x00003C00);
    CHECK(bench.vgpr(5, lane) == 0x38043C00);  // 128 / 255
    CHECK(bench.vgpr(6, lane) == 0xAAAA3C00);
    CHECK(bench.vgpr(7, lane) == 0x3C005555);
  }
  const std::vector<U> out = bench.memory.values<U>(address, 4);
  CHECK(out[1] == 0xFF0080FF);
  CHECK((out[2] & 0xFF) == 0xFF);
  CHECK((out[3] & 0xFF) == 0x80);
}

}  // namespace kiln::simulator::test
