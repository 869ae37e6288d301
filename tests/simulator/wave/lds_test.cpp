// LDS: widths, pairs, atomics, and counts of active lanes.
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "simulator/isa/opcode.hpp"
#include "tests/simulator/wave/bench.hpp"

namespace kiln::simulator::test {
namespace {

using U = std::uint32_t;
using W = std::uint64_t;

// A DS instruction with its address in v1, data in v4 and second data in v8, as far as it has them.
std::vector<U> ds_without_result(const OpcodeInfo& opcode, Generation generation) {
  const int code = generation == Generation::gfx11 ? opcode.gfx11 : opcode.gfx10_3;
  const auto vgpr_of = [&opcode](unsigned source, U vgpr) { return opcode.src[source] == DataType::none ? 0U : vgpr; };
  return {0x36U << 26U | static_cast<U>(code) << 18U, vgpr_of(2, 8) << 16U | vgpr_of(1, 4) << 8U | vgpr_of(0, 1)};
}

// The rows of the register file that it changes, by their index: the vector registers, and the rows before them, by
// which the steps of one instruction hand on values.
std::vector<unsigned> rows_changed_by(const OpcodeInfo& opcode, Generation generation, WaveSize size, bool all_lanes) {
  Bench bench({.generation = generation, .wave = size});
  const unsigned lanes = bench.wave.lanes(), rows = scratch_rows + bench.wave.vgpr_count;
  const W every_lane = lanes == 32 ? 0xFFFFFFFFU : ~W{0};
  bench.set_exec(all_lanes ? every_lane : every_lane & 0x8000001180000011U);
  for (unsigned at = 0; at < rows * lanes; ++at) bench.wave.rows[at] = 0x3F800000U + 3 * at;
  for (unsigned lane = 0; lane < lanes; ++lane) bench.vgpr(1, lane) = 16 * lane;
  const std::vector<U> before(bench.wave.rows, bench.wave.rows + std::size_t{rows} * lanes);
  REQUIRE_FALSE(bench.run(ds_without_result(opcode, generation)));
  std::vector<unsigned> changed;
  for (unsigned row = 0; row < rows; ++row) {
    const std::size_t first = std::size_t{row} * lanes;
    if (std::memcmp(&before[first], bench.wave.rows + first, lanes * sizeof(U)) != 0) changed.push_back(row);
  }
  return changed;
}

}  // namespace

TEST_CASE("simulator LDS: widths, pairs and atomics", "[simulator][wave]") {
  Bench bench;
  for (unsigned lane = 0; lane < 32; ++lane) {
    bench.vgpr(1, lane) = lane * 8;
    bench.set_vgpr64(2, lane, W{lane} << 40 | 7 * lane);
    bench.vgpr(4, lane) = 0;
    bench.vgpr(5, lane) = 1 + lane;
  }
  constexpr unsigned pair = 2 | 100 << 8;  // elements 2 and 100
  REQUIRE_FALSE(bench.run(encode::join(
      {encode::ds("ds_store_b64", 0, 1, 2), encode::ds("ds_load_b64", 10, 1, 0),
       encode::ds("ds_load_2addr_b32", 12, 1, 0, 0, 0 | 1 << 8), encode::ds("ds_store_2addr_b32", 0, 1, 5, 3, pair),
       encode::ds("ds_load_2addr_b32", 14, 1, 0, 0, pair), encode::ds("ds_add_rtn_u32", 16, 4, 5, 0, 2048),
       encode::ds("ds_max_u32", 0, 4, 5, 0, 2052), encode::ds("ds_store_b8", 0, 4, 5, 0, 2060),
       encode::ds("ds_load_i8", 17, 4, 0, 0, 2060), encode::ds("ds_cmpstore_rtn_b32", 18, 4, 5, 4, 2064)})));
  for (unsigned lane = 0; lane < 32; ++lane) {
    INFO("lane " << lane);
    CHECK(bench.vgpr64(10, lane) == (W{lane} << 40 | 7 * lane));
    CHECK(bench.vgpr(12, lane) == 7 * lane);
    CHECK(bench.vgpr(13, lane) == lane << 8);
    CHECK(bench.vgpr(14, lane) == 1 + lane);
    CHECK(bench.vgpr(15, lane) == lane << 8);
    CHECK(bench.vgpr(16, lane) == lane * (lane + 1) / 2);
    CHECK(bench.vgpr(17, lane) == 32);
    CHECK(bench.vgpr(18, lane) == (lane == 0 ? 0 : 1));  // only the first finds the zero
  }
  U word;
  std::memcpy(&word, bench.lds.data() + 2052, 4);
  CHECK(word == 32);
}

TEST_CASE("simulator LDS: an instruction without a result writes no register", "[simulator][wave]") {
  for (const Generation generation : {Generation::gfx11, Generation::gfx10_3}) {
    unsigned instructions = 0;
    for (unsigned i = 1; i < static_cast<unsigned>(Opcode::count); ++i) {
      const OpcodeInfo& opcode = info(static_cast<Opcode>(i));
      const bool present = (generation == Generation::gfx11 ? opcode.gfx11 : opcode.gfx10_3) >= 0;
      if (!present || opcode.encoding != Encoding::ds || opcode.dst != DataType::none) continue;
      if ((opcode.flags & flag::refused) != 0) continue;
      ++instructions;
      for (const WaveSize size : {WaveSize::wave32, WaveSize::wave64}) {
        for (const bool all_lanes : {true, false}) {
          INFO(opcode.name << " of " << static_cast<unsigned>(size) << " lanes, all on: " << all_lanes);
          CHECK(rows_changed_by(opcode, generation, size, all_lanes) == std::vector<unsigned>{});
        }
      }
    }
    CHECK(instructions == 49);
  }
}

TEST_CASE("simulator DS: counts of active lanes are appended and consumed", "[simulator][wave]") {
  for (const WaveSize size : {WaveSize::wave32, WaveSize::wave64}) {
    Bench bench({.wave = size});
    const U before = 1000;
    std::memcpy(bench.lds.data() + 72, &before, 4);
    bench.sgpr(125) = 0xABCD0040;  // M0: the low half is the address
    bench.set_vgpr(1, 7);
    bench.set_vgpr(2, 7);
    bench.set_exec(size == WaveSize::wave32 ? 0x80000011U : 0x8000001180000001U);
    REQUIRE_FALSE(
        bench.run(encode::join({encode::ds("ds_append", 1, 0, 0, 0, 8), encode::ds("ds_consume", 2, 0, 0, 0, 8),
                                encode::ds("ds_consume", 3, 0, 0, 0, 8)})));
    const U lanes = size == WaveSize::wave32 ? 3 : 5;
    CHECK(bench.vgpr(1, 0) == 1000);
    CHECK(bench.vgpr(1, 31) == 1000);
    CHECK(bench.vgpr(1, 1) == 7);
    CHECK(bench.vgpr(2, 0) == 1000 + lanes);
    CHECK(bench.vgpr(3, 0) == 1000);
    U after = 0;
    std::memcpy(&after, bench.lds.data() + 72, 4);
    CHECK(after == 1000 - lanes);
    bench.set_exec(0);
    REQUIRE_FALSE(bench.run(encode::ds("ds_append", 1, 0, 0, 0, 8)));
    CHECK(bench.vgpr(1, 1) == 7);
    bench.set_exec(1);
    CHECK(bench.run(encode::ds("ds_append", 1, 0, 0, 0, 9))->kind == FaultKind::misaligned);
    bench.sgpr(125) = 4093;
    CHECK(bench.run(encode::ds("ds_append", 1, 0, 0))->kind == FaultKind::overrun);
  }
}

TEST_CASE("simulator LDS: of misaligned atomics the first lane that is on is told of", "[simulator][wave]") {
  struct Row {
    const char* name;
    W exec;
    const char* reason;
  };
  // Lane i at 16 * i, but lanes 1 and 5 four bytes further, and lanes 3 and 6 two.
  for (const Row& row : {Row{"ds_add_u32", 0xFF, "ds_add_u32: LDS atomic of 4 bytes at 0x32"},
                         {"ds_add_u32", 0xF6, "ds_add_u32: LDS atomic of 4 bytes at 0x62"},
                         {"ds_add_u32", 0xB7, "none"},
                         {"ds_add_u64", 0xFF, "ds_add_u64: LDS atomic of 8 bytes at 0x14"},
                         {"ds_add_u64", 0xFC, "ds_add_u64: LDS atomic of 8 bytes at 0x32"},
                         {"ds_add_u64", 0xF5, "ds_add_u64: LDS atomic of 8 bytes at 0x54"},
                         {"ds_add_u64", 0x95, "none"}}) {
    Bench bench;
    for (unsigned lane = 0; lane < 32; ++lane) {
      bench.vgpr(1, lane) = 16 * lane + (lane == 1 || lane == 5 ? 4 : lane == 3 || lane == 6 ? 2 : 0);
    }
    bench.set_exec(row.exec);
    const auto fault = bench.run(encode::ds(row.name, 0, 1, 4));
    CHECK((fault ? fault->reason : std::string("none")) == row.reason);
  }
}

}  // namespace kiln::simulator::test
