// Memory instructions: every width and space, atomics, faults.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <string>

#include "tests/simulator/wave/bench.hpp"

namespace kiln::simulator::test {
namespace {

using encode::v;
using U = std::uint32_t;
using W = std::uint64_t;

constexpr unsigned flat = 0, scratch = 1, global = 2, off = 124;

std::vector<U> ramp(std::size_t count) {
  std::vector<U> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = 0x81000000U + static_cast<U>(i) * 0x00010203U;
  return values;
}

}  // namespace

TEST_CASE("simulator global: loads of every width, side by side and scattered", "[simulator][wave]") {
  const std::vector<U> data = ramp(4096);
  for (const unsigned step : {16U, 68U, 508U}) {  // 508: most lanes in other pages, some over a page's end
    for (const unsigned skew : {0U, 4U, 2U}) {
      Bench bench;
      const W address = bench.memory.allocate(data);
      const auto* bytes = reinterpret_cast<const std::byte*>(data.data());
      bench.set_sgpr64(2, address);
      for (unsigned lane = 0; lane < 32; ++lane) {
        bench.vgpr(1, lane) = lane * step + skew;
        bench.set_vgpr64(2, lane, address + lane * step + skew);
      }
      bench.set_vgpr(30, 0xDDDDEEEE);
      bench.set_vgpr(31, 0xDDDDEEEE);
      REQUIRE_FALSE(bench.run(encode::join({encode::flat(global, "global_load_b32", 4, 1, 0, 2),
                                            encode::flat(global, "global_load_b64", 5, 2, 0, off, 8),
                                            encode::flat(global, "global_load_b128", 8, 1, 0, 2, 16),
                                            encode::flat(flat, "flat_load_b96", 12, 2, 0, off, 4),
                                            encode::flat(global, "global_load_u8", 20, 1, 0, 2, 3),
                                            encode::flat(global, "global_load_i8", 21, 1, 0, 2, 3),
                                            encode::flat(global, "global_load_i16", 22, 2, 0, off, 2),
                                            encode::flat(global, "global_load_d16_hi_b16", 30, 1, 0, 2),
                                            encode::flat(global, "global_load_d16_u8", 31, 1, 0, 2)})));
      unsigned wrong = 0;
      for (unsigned lane = 0; lane < 32; ++lane) {
        const auto at = [&](unsigned offset, unsigned count) {
          W value = 0;
          std::memcpy(&value, bytes + lane * step + skew + offset, count);
          return value;
        };
        wrong += bench.vgpr(4, lane) != at(0, 4);
        wrong += bench.vgpr64(5, lane) != at(8, 8);
        wrong += bench.vgpr64(8, lane) != at(16, 8) || bench.vgpr64(10, lane) != at(24, 8);
        wrong += bench.vgpr64(12, lane) != at(4, 8) || bench.vgpr(14, lane) != at(12, 4);
        wrong += bench.vgpr(20, lane) != at(3, 1);
        wrong += bench.vgpr(21, lane) != static_cast<U>(static_cast<std::int8_t>(at(3, 1)));
        wrong += bench.vgpr(22, lane) != static_cast<U>(static_cast<std::int16_t>(at(2, 2)));
        wrong += bench.vgpr(30, lane) != (at(0, 2) << 16 | 0xEEEE);
        wrong += bench.vgpr(31, lane) != (at(0, 1) | 0xDDDD0000);
      }
      INFO("step " << step << " skew " << skew);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("simulator global: stores of every width, by active lanes alone", "[simulator][wave]") {
  for (const W exec : {W{0xFFFFFFFF}, W{0x0FF0A5A5}}) {
    Bench bench;
    const W address = bench.memory.allocate(4 * 4096);
    bench.set_exec(exec);
    bench.set_sgpr64(2, address);
    for (unsigned lane = 0; lane < 32; ++lane) {
      bench.vgpr(1, lane) = lane * 4;
      bench.vgpr(2, lane) = lane * 300 + 4096;
      for (unsigned r = 4; r < 8; ++r) bench.vgpr(r, lane) = lane * 1000 + r;
    }
    REQUIRE_FALSE(bench.run(encode::join({encode::flat(global, "global_store_b32", 0, 1, 4, 2),
                                          encode::flat(global, "global_store_b128", 0, 2, 4, 2),
                                          encode::flat(global, "global_store_b8", 0, 1, 5, 2, 1024),
                                          encode::flat(global, "global_store_d16_hi_b16", 0, 1, 6, 2, 2048)})));
    const std::vector<U> out = bench.memory.values<U>(address, 4096);
    for (unsigned lane = 0; lane < 32; ++lane) {
      const bool on = (exec >> lane & 1) != 0;
      INFO("lane " << lane);
      CHECK(out[lane] == (on ? lane * 1000 + 4 : 0));
      for (unsigned r = 0; r < 4; ++r) CHECK(out[(lane * 300 + 4096) / 4 + r] == (on ? lane * 1000 + 4 + r : 0));
      CHECK(out[256 + lane] == (on ? (lane * 1000 + 5) & 0xFF : 0));
      CHECK(out[512 + lane] == (on ? (lane * 1000 + 6) >> 16 : 0));
    }
  }
}

TEST_CASE("simulator global: atomics return what was there", "[simulator][wave]") {
  Bench bench;
  const W address = bench.memory.allocate(4096);
  bench.set_sgpr64(2, address);
  bench.set_vgpr(1, 64);
  bench.set_vgpr(2, 3);
  for (unsigned lane = 0; lane < 32; ++lane) bench.vgpr(3, lane) = lane;  // new value
  for (unsigned lane = 0; lane < 32; ++lane) bench.vgpr(4, lane) = lane;  // expected: 0 for the first lane alone
  bench.set_vgpr64(6, 0, 5);
  for (unsigned lane = 0; lane < 32; ++lane) bench.set_vgpr64(6, lane, W{5} << 32 | lane);
  bench.set_vgpr(20, 0x3F800000);
  REQUIRE_FALSE(bench.run(encode::join({encode::flat(global, "global_atomic_add_u32", 10, 1, 2, 2, 0, true),
                                        encode::flat(global, "global_atomic_cmpswap_b32", 11, 1, 3, 2, 64, true),
                                        encode::flat(global, "global_atomic_max_u64", 0, 1, 6, 2, 128),
                                        encode::flat(global, "global_atomic_inc_u32", 12, 1, 2, 2, 192, true),
                                        encode::flat(global, "global_atomic_add_f32", 0, 1, 20, 2, 256),
                                        encode::flat(global, "global_atomic_min_i32", 0, 1, 4, 2, 320)})));
  for (unsigned lane = 0; lane < 32; ++lane) {
    CHECK(bench.vgpr(10, lane) == lane * 3);
    CHECK(bench.vgpr(11, lane) == 0);  // each finds the zero that the ones before it have left
    CHECK(bench.vgpr(12, lane) == lane % 4);
  }
  const std::vector<U> out = bench.memory.values<U>(address, 1024);
  CHECK(out[16] == 96);
  CHECK(bench.memory.values<W>(address + 64 + 128, 1)[0] == (W{5} << 32 | 31));
  CHECK(out[(64 + 256) / 4] == 0x42000000);
  CHECK(out[(64 + 320) / 4] == 0);
}

TEST_CASE("simulator memory: faults name the address and the instruction", "[simulator][wave]") {
  Bench bench;
  const W address = bench.memory.allocate(4096), closed = bench.memory.allocate(4096, Rights::read_only);
  const auto fault_of = [&](const std::vector<U>& words) {
    const std::optional<Fault> fault = bench.run(words);
    REQUIRE(fault);
    return *fault;
  };
  bench.set_sgpr64(2, address);
  for (unsigned lane = 0; lane < 32; ++lane) bench.vgpr(1, lane) = lane == 20 ? 4096 : 0;
  const Fault unmapped = fault_of(encode::flat(global, "global_load_b32", 4, 1, 0, 2));
  CHECK(unmapped.kind == FaultKind::unmapped);
  CHECK(unmapped.address == address + 4096);
  CHECK(unmapped.reason.find("global_load_b32") != std::string::npos);
  bench.set_sgpr64(2, closed);
  bench.set_vgpr(1, 8);
  const Fault refused = fault_of(encode::flat(global, "global_store_b32", 0, 1, 4, 2));
  CHECK(refused.kind == FaultKind::permission);
  CHECK(refused.address == closed + 8);
  bench.set_sgpr64(2, address);
  // An atomic's address is a multiple of its size: 1, 2, 3 are none of 4; 1, 2, 4 are none of 8.
  for (const U odd : {1U, 2U, 3U}) {
    INFO("4 bytes at " << odd);
    bench.set_vgpr(1, odd);
    CHECK(fault_of(encode::flat(global, "global_atomic_add_u32", 0, 1, 4, 2)).kind == FaultKind::misaligned);
    CHECK(fault_of(encode::ds("ds_add_u32", 0, 1, 4)).kind == FaultKind::misaligned);
  }
  for (const U odd : {1U, 2U, 4U}) {
    INFO("8 bytes at " << odd);
    bench.set_vgpr(1, odd);
    CHECK(fault_of(encode::flat(global, "global_atomic_add_u64", 0, 1, 4, 2)).kind == FaultKind::misaligned);
    CHECK(fault_of(encode::ds("ds_add_u64", 0, 1, 4)).kind == FaultKind::misaligned);
  }
  bench.set_vgpr(1, 2);
  bench.set_vgpr(1, 4094);
  CHECK(fault_of(encode::ds("ds_store_b32", 0, 1, 4)).kind == FaultKind::overrun);
  CHECK(fault_of(encode::ds("ds_load_b32", 4, 1, 0, 0, 8)).reason.find("of 4096") != std::string::npos);
  bench.set_vgpr(1, 0);
  CHECK(fault_of(encode::flat(scratch, "scratch_load_b32", 4, 1, 0, off)).kind == FaultKind::overrun);
}

TEST_CASE("simulator scratch: each of 64 lanes has bytes and half words of its own", "[simulator][wave]") {
  Bench bench({Generation::gfx11, WaveSize::wave64, VectorChoice::best});
  const W place = bench.memory.allocate(64 * 64);
  bench.wave.scratch = {place, 64 * 64, 0};
  for (unsigned lane = 0; lane < 64; ++lane) bench.vgpr(3, lane) = 0x1234'0080 + lane;
  bench.sgpr(2) = 9;
  bench.set_vgpr(7, 8);
  REQUIRE_FALSE(bench.run(encode::join({encode::flat(scratch, "scratch_store_b8", 0, 0, 3, off, 12),
                                        encode::flat(scratch, "scratch_store_b16", 0, 0, 3, off, 16),
                                        encode::flat(scratch, "scratch_store_d16_hi_b16", 0, 0, 3, off, 20),
                                        encode::flat(scratch, "scratch_load_u8", 4, 0, 0, 2, 3),
                                        encode::flat(scratch, "scratch_load_u16", 5, 7, 0, off, 8),
                                        encode::flat(scratch, "scratch_load_u16", 6, 0, 0, off, 20)})));
  for (unsigned lane = 0; lane < 64; ++lane) {
    INFO("lane " << lane);
    CHECK(bench.vgpr(4, lane) == 0x80 + lane);
    CHECK(bench.memory.values<std::uint8_t>(place + 12 * 64 + 4 * lane, 1)[0] == 0x80 + lane);
    CHECK(bench.vgpr(5, lane) == 0x80 + lane);
    CHECK(bench.vgpr(6, lane) == 0x1234);
  }
}

// All lanes at one place, at an odd one, and each at its own; byte k of lane n lies in the words of all lanes for it.
TEST_CASE("simulator scratch: words of every width lie side by side for all lanes", "[simulator][wave]") {
  constexpr unsigned own = 64;  // bytes of a lane
  const std::string widths[] = {"b32", "b64", "b96", "b128"};
  for (unsigned i = 0; i < 4 * 3 * 2; ++i) {
    const unsigned count = i % 4 + 1, apart = i / 4 % 3;
    Bench bench({Generation::gfx11, i < 12 ? WaveSize::wave32 : WaveSize::wave64});
    const unsigned lanes = bench.wave.lanes();
    const W place = bench.memory.allocate(own * lanes);
    bench.wave.scratch = {place, own * lanes, 0};
    for (unsigned lane = 0; lane < lanes; ++lane) {
      bench.vgpr(1, lane) = apart == 0 ? 8 : apart == 1 ? 9 : lane % 48;
      for (unsigned d = 0; d < count; ++d) bench.vgpr(4 + d, lane) = 0x01000193U * (lane * 4 + d + 1);
    }
    const std::string store = "scratch_store_" + widths[count - 1], load = "scratch_load_" + widths[count - 1];
    INFO(store << " " << apart << " in waves of " << lanes);
    REQUIRE_FALSE(bench.run(encode::join(
        {encode::flat(scratch, store.c_str(), 0, 1, 4, off), encode::flat(scratch, load.c_str(), 8, 1, 0, off)})));
    for (unsigned lane = 0; lane < lanes; ++lane) {
      for (unsigned d = 0; d < count; ++d) CHECK(bench.vgpr(8 + d, lane) == bench.vgpr(4 + d, lane));
      for (unsigned k = 0; k < 4 * count; ++k) {
        const unsigned at = bench.vgpr(1, lane) + k;
        const auto byte = bench.memory.values<std::uint8_t>(place + (at / 4 * lanes + lane) * 4 + at % 4, 1)[0];
        CHECK(byte == (bench.vgpr(4 + k / 4, lane) >> k % 4 * 8 & 0xFFU));
      }
    }
    bench.set_vgpr(1, own - 4 * count);
    CHECK_FALSE(bench.run(encode::flat(scratch, load.c_str(), 8, 1, 0, off)));
    bench.set_vgpr(1, own - 4 * count + 1);
    for (const bool stores : {false, true}) {
      const auto fault = bench.run(encode::flat(scratch, (stores ? store : load).c_str(), 8, 1, 4, off));
      REQUIRE(fault);
      CHECK(fault->reason.find(std::to_string(4 * count) + " bytes at scratch 0x") != std::string::npos);
      CHECK(fault->reason.find(" of 64 for a lane") != std::string::npos);
    }
  }
}

TEST_CASE("simulator flat: one instruction reaches memory, LDS and scratch", "[simulator][wave]") {
  Bench bench;
  const W address = bench.memory.allocate(4096), place = bench.memory.allocate(4096);
  bench.wave.scratch = {place, 2048, 0};
  std::memset(bench.lds.data(), 0, bench.lds.size());
  for (unsigned lane = 0; lane < 32; ++lane) {
    const W where = lane % 3 == 0   ? address + lane * 4
                    : lane % 3 == 1 ? shared_aperture + lane * 4
                                    : private_aperture + 12;
    bench.set_vgpr64(1, lane, where);
    bench.vgpr(3, lane) = 500 + lane;
  }
  REQUIRE_FALSE(bench.run(encode::join({encode::flat(flat, "flat_store_b32", 0, 1, 3, off),
                                        encode::flat(flat, "flat_load_b32", 4, 1, 0, off),
                                        encode::flat(scratch, "scratch_load_b32", 5, 0, 0, off, 12)})));
  for (unsigned lane = 0; lane < 32; ++lane) {
    INFO("lane " << lane);
    CHECK(bench.vgpr(4, lane) == 500 + lane);
    U word = 0;
    if (lane % 3 == 0) std::memcpy(&word, bench.memory.host(address + lane * 4), 4);
    if (lane % 3 == 1) std::memcpy(&word, bench.lds.data() + lane * 4, 4);
    if (lane % 3 == 2) word = bench.vgpr(5, lane);
    CHECK(word == 500 + lane);
  }
}

// A compiler's a[31 - i] is -4 i in a register and 124 in the instruction.
TEST_CASE("simulator memory: a register and an offset are added in 32 bits", "[simulator][wave]") {
  const std::vector<U> data = ramp(64);
  for (const int step : {4, -4}) {
    Bench bench;
    bench.set_buffer(8, bench.memory.allocate(data), 0, 256, encode::raw_buffer);
    std::memcpy(bench.lds.data(), data.data(), 256);
    for (unsigned lane = 0; lane < 32; ++lane) bench.vgpr(1, lane) = static_cast<U>(step * static_cast<int>(lane) - 8);
    REQUIRE_FALSE(bench.run(encode::join({encode::mubuf("buffer_load_b32", 4, 1, 8, 128, 132, false, true),
                                          encode::ds("ds_load_b32", 5, 1, 0, 0, 132)})));
    for (unsigned lane = 0; lane < 32; ++lane) {
      INFO("step " << step << " lane " << lane);
      const U value = data[static_cast<std::size_t>(31 + static_cast<int>(lane) * step / 4)];
      CHECK(bench.vgpr(4, lane) == value);
      CHECK(bench.vgpr(5, lane) == value);
    }
    const std::optional<Fault> below = bench.run(encode::ds("ds_load_b32", 5, 1, 0, 0, 4));
    REQUIRE(below);
    CHECK(below->kind == FaultKind::overrun);
  }
}

TEST_CASE("simulator memory: stores and atomics mark exactly the bytes that they write", "[simulator][wave]") {
  struct Case {
    std::vector<U> words;
    unsigned bytes;  // of a lane
  };
  // v1: offsets, 20 bytes apart; v2, v3: addresses; s[2:3]: the buffer; s[4:7]: its descriptor
  const Case cases[] = {
      {encode::flat(global, "global_store_b8", 0, 1, 8, 2), 1},
      {encode::flat(global, "global_store_d16_hi_b16", 0, 1, 8, 2), 2},
      {encode::flat(global, "global_store_b32", 0, 1, 8, 2), 4},
      {encode::flat(global, "global_store_b96", 0, 2, 8, off), 12},
      {encode::flat(flat, "flat_store_b128", 0, 2, 8, off), 16},
      {encode::flat(global, "global_atomic_add_u32", 0, 1, 8, 2), 4},
      {encode::flat(global, "global_atomic_cmpswap_b64", 0, 1, 8, 2), 8},
      {encode::mubuf("buffer_store_b16", 8, 1, 4, 128, 0, false, true), 2},
      {encode::mubuf("buffer_store_b64", 8, 1, 4, 128, 0, false, true), 8},
      {encode::mubuf("buffer_store_format_xy", 8, 1, 4, 128, 0, false, true), 8},
      {encode::mubuf("buffer_atomic_or_b32", 8, 1, 4, 128, 0, false, true), 4},
  };
  for (const unsigned step : {20U, 516U}) {
    for (const unsigned skew : {0U, 4U}) {
      for (const Case& each : cases) {
        if (each.bytes == 8 && (each.words[0] >> 26U) == 0x37 && (step % 8 != 0 || skew % 8 != 0)) continue;
        Bench bench;
        const std::size_t size = 32 * step + 32;
        const W base = bench.memory.allocate(size);
        bench.set_sgpr64(2, base);
        bench.set_buffer(4, base, 0, static_cast<U>(size), encode::raw_buffer | 50U << 12);  // 50: 32_32_UINT
        for (unsigned lane = 0; lane < 32; ++lane) {
          bench.vgpr(1, lane) = lane * step + skew;
          bench.set_vgpr64(2, lane, base + lane * step + skew);
        }
        for (unsigned i = 8; i < 12; ++i) bench.set_vgpr(i, 0);  // what memory already holds
        bench.set_exec(0xFFFF'7FFF);
        const auto fault = bench.run(each.words);
        INFO((fault ? fault->reason : std::string()));
        REQUIRE_FALSE(fault);
        const std::vector<bool> marked = bench.memory.take_marks(base, size);
        unsigned wrong = 0;
        for (std::size_t at = 0; at < size; ++at) {
          const std::size_t lane = (at - skew) / step;
          const bool written = at >= skew && lane < 32 && lane != 15 && (at - skew) % step < each.bytes;
          wrong += marked[at] != written ? 1 : 0;
        }
        INFO(std::hex << each.words[0] << " step " << step << " skew " << skew);
        CHECK(wrong == 0);
      }
    }
  }
  // Words side by side, which go as one run.
  for (const unsigned words : {1U, 2U, 4U}) {
    Bench bench;
    const W base = bench.memory.allocate(32 * 16 + 64);
    bench.set_sgpr64(2, base);
    for (unsigned lane = 0; lane < 32; ++lane) bench.vgpr(1, lane) = lane * 4 * words + 8;
    const std::string name = "global_store_b" + std::to_string(32 * words);
    REQUIRE_FALSE(bench.run(encode::flat(global, name.c_str(), 0, 1, 8, 2)));
    const std::vector<bool> marked = bench.memory.take_marks(base, 32 * 16 + 64);
    for (std::size_t at = 0; at < marked.size(); ++at) {
      if (marked[at] != (at >= 8 && at < 8 + 128 * words)) FAIL_CHECK(name << " at byte " << at);
    }
  }
}

TEST_CASE("simulator memory: a load of some lanes changes nothing but their words", "[simulator][wave]") {
  for (const VectorChoice vectors : {VectorChoice::best, VectorChoice::no_avx512, VectorChoice::portable}) {
    for (const U mask : {1U, 0x80000000U, 0x0FF000FFU, 0x7FFFFFFFU, 0xFFFFFFFEU, ~0U}) {
      Bench bench({.vectors = vectors});
      const std::vector<U> data = ramp(64);
      bench.set_sgpr64(2, bench.memory.allocate(data));
      std::memcpy(bench.lds.data(), data.data(), 256);
      for (unsigned lane = 0; lane < 32; ++lane) bench.vgpr(1, lane) = lane * 4 + 8;
      for (unsigned r = 3; r < 9; ++r) bench.set_vgpr(r, 0xDEAD0000 + r);
      bench.set_exec(mask);
      REQUIRE_FALSE(bench.run(
          encode::join({encode::flat(global, "global_load_b32", 4, 1, 0, 2), encode::ds("ds_load_b32", 7, 1, 0)})));
      INFO(std::hex << "mask " << mask);
      for (unsigned r = 3; r < 9; ++r) {
        for (unsigned lane = 0; lane < 32; ++lane) {
          const bool loaded = (r == 4 || r == 7) && (mask >> lane & 1) != 0;
          CHECK(bench.vgpr(r, lane) == (loaded ? data[lane + 2] : 0xDEAD0000 + r));
        }
      }
    }
  }
}

TEST_CASE("simulator memory: lanes that share places get the words that are there", "[simulator][wave]") {
  using Places = U (*)(U lane);
  const Places patterns[] = {
      [](U) { return 40U; },                             // one place
      [](U lane) { return lane / 8 * 3; },               // one for each eight lanes
      [](U lane) { return lane % 8 * 5; },               // repeated after eight
      [](U lane) { return lane % 16 * 7; },              // after sixteen
      [](U lane) { return lane % 16 * 7 + lane / 24; },  // not quite
      [](U lane) { return lane / 8 * 3 + (lane == 29 ? 1 : 0); },
      [](U lane) { return lane * 37 % 128; },
  };
  const std::vector<U> data = ramp(256);
  for (const VectorChoice vectors : {VectorChoice::best, VectorChoice::no_avx512, VectorChoice::portable}) {
    for (std::size_t pattern = 0; pattern < std::size(patterns); ++pattern) {
      for (const U mask : {~0U, 0xFFFF'7FFEU, 0x8000'0000U}) {
        for (const U words : {1U, 2U, 3U, 4U}) {
          Bench bench({.vectors = vectors});
          bench.set_sgpr64(2, bench.memory.allocate(data));
          std::memcpy(bench.lds.data(), data.data(), 1024);
          for (unsigned lane = 0; lane < 32; ++lane) bench.vgpr(1, lane) = patterns[pattern](lane) * 4;
          bench.set_exec(mask);
          const std::string bits = std::to_string(32 * words);
          REQUIRE_FALSE(bench.run(encode::join({encode::ds(("ds_load_b" + bits).c_str(), 4, 1, 0),
                                                encode::flat(global, ("global_load_b" + bits).c_str(), 12, 1, 0, 2),
                                                encode::ds(("ds_store_b" + bits).c_str(), 0, 1, 4, 0, 2048)})));
          unsigned wrong = 0;
          for (unsigned lane = 0; lane < 32; ++lane) {
            for (unsigned w = 0; w < words; ++w) {
              const U expected = (mask >> lane & 1U) != 0 ? data[patterns[pattern](lane) + w] : 0;
              wrong += bench.vgpr(4 + w, lane) != expected || bench.vgpr(12 + w, lane) != expected ? 1 : 0;
              U stored;
              std::memcpy(&stored, bench.lds.data() + 2048 + (patterns[pattern](lane) + w) * 4, 4);
              wrong += expected != 0 && stored != expected ? 1 : 0;
            }
          }
          INFO("pattern " << pattern << ", " << words << " words, mask " << std::hex << mask);
          CHECK(wrong == 0);
        }
      }
    }
  }
}

TEST_CASE("simulator global: words of lanes by their number", "[simulator][wave]") {
  for (const WaveSize size : {WaveSize::wave32, WaveSize::wave64}) {
    Bench bench({.wave = size});
    const std::vector<U> data = ramp(256);
    const W address = bench.memory.allocate(data);
    bench.set_sgpr64(2, address);
    bench.set_exec(size == WaveSize::wave32 ? 0xFFFF'FFFDU : ~W{2});
    bench.set_vgpr(1, 5);
    REQUIRE_FALSE(bench.run(encode::join({encode::flat(global, "global_load_addtid_b32", 1, 0, 0, 2, 16),
                                          encode::flat(global, "global_store_addtid_b32", 0, 0, 1, 2, 512)})));
    const std::vector<U> after = bench.memory.values<U>(address, 256);
    for (unsigned lane = 0; lane < bench.wave.lanes(); ++lane) {
      CHECK(bench.vgpr(1, lane) == (lane == 1 ? 5 : data[4 + lane]));
      CHECK(after[128 + lane] == (lane == 1 ? data[129] : data[4 + lane]));
    }
    const std::vector<bool> marked = bench.memory.take_marks(address, 1024);
    CHECK(marked[512]);
    CHECK_FALSE(marked[516]);
    CHECK_FALSE(marked[16]);
    bench.set_sgpr64(2, 64);
    CHECK(bench.run(encode::flat(global, "global_load_addtid_b32", 1, 0, 0, 2))->kind == FaultKind::unmapped);
  }
}

}  // namespace kiln::simulator::test
