// LDS: exchanges of two elements, addresses by the lane's number, swizzles, and exchanges under a condition.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/simulator/wave/bench.hpp"

namespace kiln::simulator::test {
namespace {

using U = std::uint32_t;
using W = std::uint64_t;

U word_at(const Bench& bench, std::size_t byte) {
  U word = 0;
  std::memcpy(&word, bench.lds.data() + byte, 4);
  return word;
}

// Word i of LDS is 1000 + i.
void number_words(Bench& bench) {
  for (U i = 0; i < bench.lds.size() / 4; ++i) {
    const U value = 1000 + i;
    std::memcpy(bench.lds.data() + 4 * std::size_t{i}, &value, 4);
  }
}

U bits(float value) {
  U word = 0;
  std::memcpy(&word, &value, 4);
  return word;
}

}  // namespace

TEST_CASE("simulator LDS: two elements of a lane are exchanged at once", "[simulator][wave]") {
  for (const W exec : {W{0xFFFFFFFF}, W{0x80000005}}) {
    for (const bool far : {false, true}) {
      for (const unsigned words : {1U, 2U}) {
        CAPTURE(exec, far, words);
        Bench bench;
        number_words(bench);
        // Elements 1 and 3: of the lane's own 32 bytes, or 64 elements apart, where lanes lie side by side.
        const unsigned lane_bytes = far ? 4 * words : 32, apart = far ? 64 * 4 * words : 4 * words;
        for (unsigned lane = 0; lane < 32; ++lane) {
          bench.vgpr(1, lane) = lane * lane_bytes;
          for (unsigned w = 0; w < 2; ++w) {
            bench.vgpr(2 + w, lane) = 1 + lane + 100 * w;
            bench.vgpr(4 + w, lane) = 500 + lane + 100 * w;
          }
          for (unsigned r = 10; r < 14; ++r) bench.vgpr(r, lane) = 7;
        }
        bench.set_exec(exec);
        const char* const names[] = {"ds_storexchg_2addr_rtn_b32", "ds_storexchg_2addr_rtn_b64",
                                     "ds_storexchg_2addr_stride64_rtn_b32", "ds_storexchg_2addr_stride64_rtn_b64"};
        REQUIRE_FALSE(bench.run(encode::ds(names[(far ? 2 : 0) + words - 1], 10, 1, 2, 4, 1 | 3 << 8)));
        for (unsigned lane = 0; lane < 32; ++lane) {
          CAPTURE(lane);
          const bool on = (exec >> lane & 1) != 0;
          for (unsigned which = 0; which < 2; ++which) {
            for (unsigned w = 0; w < words; ++w) {
              const unsigned byte = lane * lane_bytes + (which == 0 ? 1 : 3) * apart + 4 * w;
              CHECK(bench.vgpr(10 + which * words + w, lane) == (on ? 1000 + byte / 4 : 7));
              const U given = (which == 0 ? 1 : 500) + lane + 100 * w;
              CHECK(word_at(bench, byte) == (on ? given : 1000 + byte / 4));
            }
          }
          for (unsigned r = 2 * words; r < 4; ++r) CHECK(bench.vgpr(10 + r, lane) == 7);
        }
        CHECK(word_at(bench, 0) == 1000);
      }
    }
  }
  Bench bench;
  bench.set_vgpr(1, 4092);
  CHECK(bench.run(encode::ds("ds_storexchg_2addr_rtn_b32", 10, 1, 2, 4, 0 | 1 << 8))->kind == FaultKind::overrun);
}

TEST_CASE("simulator LDS: lanes side by side from M0 on", "[simulator][wave]") {
  for (const WaveSize size : {WaveSize::wave32, WaveSize::wave64}) {
    Bench bench({.wave = size});
    number_words(bench);
    bench.sgpr(125) = 0xABCD0040;  // the low half is the address
    bench.set_vgpr(6, 7);
    for (unsigned lane = 0; lane < bench.wave.lanes(); ++lane) bench.vgpr(5, lane) = 50 + lane;
    bench.set_exec(~W{2});
    REQUIRE_FALSE(bench.run(encode::join(
        {encode::ds("ds_load_addtid_b32", 6, 0, 0, 0, 16), encode::ds("ds_store_addtid_b32", 0, 0, 5, 0, 16)})));
    for (unsigned lane = 0; lane < bench.wave.lanes(); ++lane) {
      CAPTURE(lane);
      CHECK(bench.vgpr(6, lane) == (lane == 1 ? 7 : 1000 + 20 + lane));
      CHECK(word_at(bench, 80 + 4 * lane) == (lane == 1 ? 1021 : 50 + lane));
    }
    CHECK(word_at(bench, 76) == 1019);
    bench.set_exec(~W{0});
    bench.sgpr(125) = 4096 - 4 * bench.wave.lanes();
    CHECK_FALSE(bench.run(encode::ds("ds_load_addtid_b32", 6, 0, 0, 0, 0)));
    CHECK(bench.run(encode::ds("ds_load_addtid_b32", 6, 0, 0, 0, 4))->kind == FaultKind::overrun);
    bench.set_exec(1);  // the others lie outside
    CHECK_FALSE(bench.run(encode::ds("ds_store_addtid_b32", 0, 0, 5, 0, 4)));
  }
}

TEST_CASE("simulator memory: lanes side by side from a scalar address on", "[simulator][wave]") {
  Bench bench;
  std::vector<U> data(64);
  for (U i = 0; i < data.size(); ++i) data[i] = 1000 + i;
  const W address = bench.memory.allocate(data);
  bench.set_sgpr64(4, address + 16);
  bench.set_vgpr(10, 7);
  bench.set_vgpr(11, 9);
  bench.set_exec(0xFFFFFFFE);
  REQUIRE_FALSE(bench.run(encode::join({encode::flat(2, "global_load_addtid_b32", 10, 0, 0, 4, -8),
                                        encode::flat(2, "global_store_addtid_b32", 0, 0, 11, 4, 4)})));
  const std::vector<U> after = bench.memory.values<U>(address, 64);
  for (unsigned lane = 0; lane < 32; ++lane) {
    CHECK(bench.vgpr(10, lane) == (lane == 0 ? 7 : 1002 + lane));
    CHECK(after[5 + lane] == (lane == 0 ? 1005 : 9));
  }
  CHECK(after[4] == 1004);
  CHECK(after[37] == 1037);
}

TEST_CASE("simulator LDS: swizzles within four lanes, and by masks", "[simulator][wave]") {
  const auto swizzled = [](unsigned control, W exec = 0xFFFFFFFF) {
    Bench bench;
    for (unsigned lane = 0; lane < 32; ++lane) bench.vgpr(1, lane) = 100 + lane;
    bench.set_vgpr(2, 7);
    bench.set_exec(exec);
    REQUIRE_FALSE(bench.run(encode::ds("ds_swizzle_b32", 2, 1, 0, 0, control)));
    std::vector<U> out;
    for (unsigned lane = 0; lane < 32; ++lane) out.push_back(bench.vgpr(2, lane));
    return out;
  };
  for (unsigned lane = 0; lane < 32; ++lane) {
    CAPTURE(lane);
    CHECK(swizzled(0x8000 | 0x1B)[lane] == 100 + (lane & 28) + (3 - lane % 4));  // backwards
    CHECK(swizzled(0x8000 | 0xE4)[lane] == 100 + lane);
    CHECK(swizzled(0x8000 | 0x55)[lane] == 100 + (lane & 28) + 1);
    CHECK(swizzled(0x1F)[lane] == 100 + lane);                      // and
    CHECK(swizzled(0x10 | 3 << 5)[lane] == 100 + (lane & 16) + 3);  // and, or
    CHECK(swizzled(0x1F | 9 << 10)[lane] == 100 + (lane ^ 9));      // xor
    CHECK(swizzled(0x1C | 2 << 5 | 3 << 10)[lane] == 100 + (lane & 28) + 1);
    // Lanes that are off give nothing and keep what they have.
    CHECK(swizzled(0x1F | 1 << 10, 0xFFFFFFFE)[lane] == (lane == 0 ? 7 : lane == 1 ? 0 : 100 + (lane ^ 1)));
  }
  Bench bench;
  const auto fault = bench.run(encode::ds("ds_swizzle_b32", 2, 1, 0, 0, 0x8100));
  REQUIRE(fault);
  CHECK(fault->kind == FaultKind::unknown_opcode);
  CHECK_THAT(fault->reason, Catch::Contains("swizzle mode 0x8100"));
}

TEST_CASE("simulator LDS: each half is exchanged where the highest bit of its new value says so", "[simulator][wave]") {
  struct Case {
    U low, high, after_low, after_high;
  };
  const Case cases[] = {
      {5, 6, 1000, 1001}, {0x80000005, 6, 5, 1001}, {5, 0x80000006, 1000, 6}, {0xFFFFFFFF, 0x80000000, 0x7FFFFFFF, 0}};
  for (const Case& each : cases) {
    Bench bench;
    number_words(bench);
    bench.set_exec(2);
    bench.set_vgpr(1, 0);
    bench.set_vgpr(2, each.low);
    bench.set_vgpr(3, each.high);
    REQUIRE_FALSE(bench.run(encode::ds("ds_condxchg32_rtn_b64", 10, 1, 2, 0, 0)));
    CHECK(bench.vgpr(10, 1) == 1000);
    CHECK(bench.vgpr(11, 1) == 1001);
    CHECK(word_at(bench, 0) == each.after_low);
    CHECK(word_at(bench, 4) == each.after_high);
    CHECK(word_at(bench, 8) == 1002);
  }
}

TEST_CASE("simulator LDS: a comparison of numbers takes both zeros as one, and no NaN as equal", "[simulator][wave]") {
  struct Case {
    U there, compared;
    bool written;
  };
  const U nan = 0x7FC00000;
  for (const Case& each : {Case{bits(0.0F), bits(-0.0F), true},
                           {bits(1.5F), bits(1.5F), true},
                           {bits(1.5F), bits(-1.5F), false},
                           {nan, nan, false}}) {
    CAPTURE(each.there, each.compared);
    Bench bench;
    std::memcpy(bench.lds.data() + 16, &each.there, 4);
    const double there = each.there == nan ? __builtin_nan("") : each.there == bits(1.5F) ? 1.5 : 0.0;
    const double compared = each.compared == nan           ? __builtin_nan("")
                            : each.compared == bits(1.5F)  ? 1.5
                            : each.compared == bits(-1.5F) ? -1.5
                                                           : -0.0;
    std::memcpy(bench.lds.data() + 24, &there, 8);
    W wide = 0;
    std::memcpy(&wide, &compared, 8);
    bench.set_exec(1);
    bench.set_vgpr(1, 16);
    bench.set_vgpr(2, bits(9));
    bench.set_vgpr64(4, 0, 77);
    bench.set_vgpr(3, each.compared);
    bench.set_vgpr64(6, 0, wide);
    REQUIRE_FALSE(bench.run(encode::join(
        {encode::ds("ds_cmpstore_rtn_f32", 10, 1, 2, 3, 0), encode::ds("ds_cmpstore_rtn_f64", 12, 1, 4, 6, 8)})));
    CHECK(bench.vgpr(10, 0) == each.there);
    CHECK(word_at(bench, 16) == (each.written ? bits(9) : each.there));
    CHECK((word_at(bench, 24) == 77 && word_at(bench, 28) == 0) == each.written);
  }
}

}  // namespace kiln::simulator::test
