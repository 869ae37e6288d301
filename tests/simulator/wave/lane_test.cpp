// Instructions across lanes: DPP, SDWA, permutations, lane reads and writes, counts; and VOPD's pairs.
#include <catch2/catch.hpp>
#include <cstdint>
#include <tuple>

#include "tests/simulator/wave/bench.hpp"

namespace kiln::simulator::test {
namespace {

using encode::v;
using U = std::uint32_t;
using W = std::uint64_t;

constexpr U dpp16 = 250, dpp8 = 233;

U dpp_word(U source, U control, bool bound, bool inactive, U row_mask = 15, U bank_mask = 15) {
  return row_mask << 28 | bank_mask << 24 | (bound ? 1U << 19 : 0) | (inactive ? 1U << 18 : 0) | control << 8 | source;
}

// v_mov_b32 v0, v1 under one DPP control; v1 is the lane's number, v0 was 900.
std::vector<U> moved(U control, bool bound, bool inactive = false, std::uint64_t exec = 0xFFFFFFFF, U row_mask = 15) {
  Bench bench;
  for (unsigned lane = 0; lane < 32; ++lane) bench.vgpr(1, lane) = lane;
  bench.set_vgpr(0, 900);
  bench.set_exec(exec);
  REQUIRE_FALSE(bench.run({encode::vop1("v_mov_b32", 0, dpp16), dpp_word(1, control, bound, inactive, row_mask)}));
  CHECK(bench.exec() == exec);
  std::vector<U> result;
  for (unsigned lane = 0; lane < 32; ++lane) result.push_back(bench.vgpr(0, lane));
  return result;
}

}  // namespace

TEST_CASE("simulator DPP: every control moves lanes as it says", "[simulator][wave]") {
  const std::vector<U> quad = moved(0x1B, false), left = moved(0x103, false), right = moved(0x113, true);
  const std::vector<U> rotated = moved(0x121, false), mirrored = moved(0x140, false), half = moved(0x141, false);
  const std::vector<U> shared = moved(0x155, false), exchanged = moved(0x163, false);
  for (unsigned i = 0; i < 32; ++i) {
    const unsigned row = i & 16, at = i & 15;
    INFO("lane " << i);
    CHECK(quad[i] == (i ^ 3));
    CHECK(left[i] == (at + 3 < 16 ? i + 3 : 900));
    CHECK(right[i] == (at >= 3 ? i - 3 : 0));
    CHECK(rotated[i] == (row | ((at + 15) & 15)));
    CHECK(mirrored[i] == (row | (15 - at)));
    CHECK(half[i] == (i ^ 7));
    CHECK(shared[i] == (row | 5));
    CHECK(exchanged[i] == (i ^ 3));
  }
  // A lane that is off gives nothing, unless it is to be fetched; a row that the mask leaves out keeps its value.
  const std::vector<U> off = moved(0xB1, false, false, 0xFFFFFFFD), on = moved(0xB1, false, true, 0xFFFFFFFD);
  CHECK(off[0] == 900);
  CHECK(on[0] == 1);
  CHECK(on[1] == 900);
  const std::vector<U> masked = moved(0xB1, true, false, 0xFFFFFFFF, 1);
  CHECK(masked[3] == 2);
  CHECK(masked[20] == 900);
}

TEST_CASE("simulator DPP: eight lanes, sums, and compares", "[simulator][wave]") {
  Bench bench;
  for (unsigned lane = 0; lane < 32; ++lane) {
    bench.vgpr(1, lane) = lane;
    bench.vgpr(2, lane) = 100;
  }
  U selectors = 0;
  for (unsigned i = 0; i < 8; ++i) selectors |= (7 - i) << 3 * i;
  REQUIRE_FALSE(bench.run({encode::vop2("v_add_nc_u32", 3, dpp8, v(2)), selectors << 8 | 1,
                           encode::vop2("v_add_nc_u32", 4, dpp16, v(1)), dpp_word(1, 0x111, true, false),
                           encode::vopc("v_cmp_eq_u32", dpp16, v(1)), dpp_word(1, 0xA0, false, false)}));
  for (unsigned lane = 0; lane < 32; ++lane) {
    CHECK(bench.vgpr(3, lane) == 100 + (lane ^ 7));
    CHECK(bench.vgpr(4, lane) == lane + (lane % 16 == 0 ? 0 : lane - 1));
  }
  CHECK(bench.sgpr(operand::vcc_lo) == 0x55555555);  // quads of 0 0 2 2
}

// Lanes 0 of each row have no source, lane 40 is off, and bank 1 is left out.
TEST_CASE("simulator DPP: lanes that take no part keep what they had", "[simulator][wave]") {
  Bench bench({Generation::gfx11, WaveSize::wave64});
  for (unsigned lane = 0; lane < 64; ++lane) bench.vgpr(1, lane) = lane;
  bench.set_vgpr(2, 3);
  for (unsigned v = 3; v < 7; ++v) bench.set_vgpr(v, 900 + v);
  bench.set_vgpr(7, 0x40000000);  // 2.0
  bench.set_vgpr(8, 0x40400000);  // 3.0
  bench.set_vgpr(9, 0x3F800000);  // 1.0
  bench.set_exec(~(std::uint64_t{1} << 40U));
  const U right = dpp_word(1, 0x111, false, false, 15, 13);
  REQUIRE_FALSE(bench.run({encode::vop2("v_add_nc_u32", 3, dpp16, v(2)), right,       //
                           encode::vop1("v_mov_b32", 4, dpp16), right,                //
                           encode::vop2("v_add_nc_u32", 1, dpp16, v(2)), right,       // in place
                           encode::vop2("v_fmac_f32", 9, dpp16, v(8)), right | 6}));  // v7
  for (unsigned lane = 0; lane < 64; ++lane) {
    const bool part = lane % 16 != 0 && lane / 4 % 4 != 1 && lane != 40 && lane != 41;
    INFO("lane " << lane);
    CHECK(bench.vgpr(3, lane) == (part ? lane - 1 + 3 : 903));
    CHECK(bench.vgpr(4, lane) == (part ? lane - 1 : 904));
    CHECK(bench.vgpr(1, lane) == (part ? lane - 1 + 3 : lane));
    CHECK(bench.vgpr(9, lane) == (part ? 0x40E00000U : 0x3F800000U));
  }
  CHECK(bench.exec() == ~(std::uint64_t{1} << 40U));
}

TEST_CASE("simulator DPP: compares on gfx10.3, as Mesa's compiler emits them", "[simulator][wave]") {
  for (const WaveSize size : {WaveSize::wave32, WaveSize::wave64}) {
    Bench bench({Generation::gfx10_3, size, VectorChoice::best});
    for (unsigned lane = 0; lane < bench.wave.lanes(); ++lane) bench.vgpr(1, lane) = lane;
    U selectors = 0;
    for (unsigned i = 0; i < 8; ++i) selectors |= (7 - i) << 3 * i;
    const auto compare = [](const char* name, unsigned source) {
      return 0x3EU << 25 | encode::number(name, Generation::gfx10_3) << 17 | 1U << 9 | source;
    };
    const U save_vcc = 0xBE84046AU;  // s_mov_b64 s[4:5], vcc
    REQUIRE_FALSE(bench.run({compare("v_cmp_eq_i32", dpp16), dpp_word(1, 0xA0, false, false), save_vcc,
                             compare("v_cmp_gt_u32", dpp8), selectors << 8 | 1}));
    const W mask = size == WaveSize::wave32 ? 0xFFFFFFFF : ~W{0};
    CHECK((bench.wave.scalar64(4) & mask) == (0x5555'5555'5555'5555 & mask));  // quads of 0 0 2 2
    CHECK((bench.wave.scalar64(106) & mask) == (0x0F0F'0F0F'0F0F'0F0F & mask));
  }
}

TEST_CASE("simulator SDWA: parts of registers on gfx10.3", "[simulator][wave]") {
  Bench bench({Generation::gfx10_3, WaveSize::wave32, VectorChoice::best});
  bench.set_vgpr(1, 0x80112233);
  bench.set_vgpr(2, 0x00010005);
  bench.set_vgpr(3, 0xAAAAAAAA);
  bench.set_vgpr(4, 0xAAAAAAAA);
  // v_add_nc_u32_sdwa with byte 3 of v1, sign-extended, and word 1 of v2.
  constexpr U add_nc = 37U << 25, sdwa = 249;
  const auto word = [](U source, U dst_sel, U unused, U sel0, bool extend0, U sel1) {
    return source | dst_sel << 8 | unused << 11 | sel0 << 16 | (extend0 ? 1U << 19 : 0) | sel1 << 24;
  };
  REQUIRE_FALSE(bench.run({add_nc | 3U << 17 | 2U << 9 | sdwa, word(1, 6, 0, 3, true, 5),
                           add_nc | 4U << 17 | 2U << 9 | sdwa, word(1, 1, 2, 0, false, 4)}));
  // v_cndmask_b32_sdwa: byte 3 of v1, sign-extended, in lanes whose bit of VCC is clear; else word 1 of v2.
  bench.sgpr(106) = 1U << 8;
  REQUIRE_FALSE(bench.run({1U << 25 | 5U << 17 | 2U << 9 | sdwa, word(1, 6, 0, 3, true, 5)}));
  // v_add_nc_u32_sdwa v6, byte 3 of v1, byte 3 of v1 with its sign; v7: the same in word 1, with the sign below.
  REQUIRE_FALSE(bench.run({add_nc | 6U << 17 | 1U << 9 | sdwa, word(1, 6, 0, 3, false, 3) | 1U << 27U,
                           add_nc | 7U << 17 | 1U << 9 | sdwa, word(1, 4, 1, 3, false, 0)}));
  // In byte 0 and byte 1, with the sign above, or zeros: 0x80 of v1 and, from a constant, 0xFF.
  bench.set_vgpr(10, 0);
  constexpr U constant = 1U << 23U;
  REQUIRE_FALSE(bench.run({add_nc | 8U << 17 | 10U << 9 | sdwa, word(1, 0, 1, 3, false, 6),
                           add_nc | 9U << 17 | 10U << 9 | sdwa, word(1, 1, 1, 3, false, 6),
                           add_nc | 11U << 17 | 10U << 9 | sdwa, word(193, 1, 0, 1, false, 6) | constant}));
  CHECK(bench.vgpr(8, 7) == 0xFFFFFF80);
  CHECK(bench.vgpr(9, 7) == 0xFFFF8000);
  CHECK(bench.vgpr(11, 7) == 0x0000FF00);
  CHECK(bench.vgpr(6, 7) == 0);
  CHECK(bench.vgpr(7, 7) == 0x000000B3);
  CHECK(bench.vgpr(5, 7) == 0xFFFFFF80);
  CHECK(bench.vgpr(5, 8) == 1);
  CHECK(bench.vgpr(3, 7) == 0xFFFFFF81);
  CHECK(bench.vgpr(4, 7) == 0xAAAA38AA);
}

TEST_CASE("simulator: lanes read, written, permuted and counted", "[simulator][wave]") {
  Bench bench({Generation::gfx11, WaveSize::wave64, VectorChoice::best});
  for (unsigned lane = 0; lane < 64; ++lane) {
    bench.vgpr(1, lane) = 1000 + lane;
    bench.vgpr(2, lane) = (lane ^ 9) * 4;
  }
  bench.set_exec(0xFFFFFFFFFFFFFFF0);
  bench.sgpr(2) = 37;
  bench.set_sgpr64(4, 0xF0F0F0F0F0F0F0F0);
  bench.sgpr(8) = 0x76543210;
  bench.sgpr(9) = 0x01234567;
  bench.sgpr(10) = 7000;
  REQUIRE_FALSE(
      bench.run(encode::join({{encode::vop1("v_readfirstlane_b32", 20, v(1))},
                              encode::vop3("v_mbcnt_lo_u32_b32", 11, 4, 10),
                              encode::vop3("v_readlane_b32", 21, v(1), 2),
                              encode::vop3("v_writelane_b32", 3, 2, 128 + 50),
                              encode::vop3("v_mbcnt_lo_u32_b32", 4, 4, 128),
                              encode::vop3("v_mbcnt_hi_u32_b32", 4, 5, v(4)),
                              {encode::vop1("v_permlane64_b32", 5, v(1))},
                              encode::vop3("v_permlane16_b32", 6, v(1), 8, 9, {.op_sel = 1}),
                              encode::vop3("v_permlanex16_b32", 7, v(1), 8, 9, {.abs = 1, .neg = 1, .op_sel = 9}),
                              encode::ds("ds_bpermute_b32", 8, 2, 1),
                              encode::ds("ds_permute_b32", 9, 2, 1),
                              encode::ds("ds_swizzle_b32", 10, 1, 0, 0, 31 | 16 << 10)})));
  CHECK(bench.sgpr(20) == 1004);
  CHECK(bench.sgpr(21) == 1037);
  CHECK(bench.vgpr(3, 50) == 37);
  for (unsigned lane = 4; lane < 64; ++lane) {
    const std::uint64_t below = 0xF0F0F0F0F0F0F0F0 & ((std::uint64_t{1} << lane) - 1);
    const unsigned nibble = (lane & 15) < 8 ? lane & 7 : 7 - (lane & 7);
    INFO("lane " << lane);
    CHECK(bench.vgpr(4, lane) == static_cast<U>(__builtin_popcountll(below)));
    CHECK(bench.vgpr(11, lane) == 7000 + static_cast<U>(__builtin_popcountll(below & 0xFFFFFFFF)));
    CHECK(bench.vgpr(5, lane) == 1000 + (lane ^ 32));
    CHECK(bench.vgpr(6, lane) == 1000 + ((lane & 48) | nibble));
    CHECK(bench.vgpr(7, lane) == 1000 + (((lane & 48) ^ 16) | nibble));
    CHECK(bench.vgpr(8, lane) == ((lane ^ 9) < 4 ? 0 : 1000 + (lane ^ 9)));
    CHECK(bench.vgpr(9, lane) == ((lane ^ 9) < 4 ? 0 : 1000 + (lane ^ 9)));
    CHECK(bench.vgpr(10, lane) == ((lane ^ 16) < 4 ? 0 : 1000 + (lane ^ 16)));
  }
}

// op_sel: bit 0 reads lanes that are off too, bit 1 takes them as zero.
TEST_CASE("simulator: lanes that are off, as sources of a permutation", "[simulator][wave]") {
  for (unsigned select = 0; select < 4; ++select) {
    Bench bench({Generation::gfx11, WaveSize::wave64});
    for (unsigned lane = 0; lane < 64; ++lane) bench.vgpr(1, lane) = 1000 + lane;
    bench.set_vgpr(6, 900);
    bench.set_vgpr(7, 900);
    constexpr W exec = 0xFFFF'0FFF'F0FF'FFF0;
    bench.set_exec(exec);
    bench.sgpr(8) = 0x76543210;
    bench.sgpr(9) = 0x01234567;
    REQUIRE_FALSE(bench.run(encode::join({encode::vop3("v_permlane16_b32", 6, v(1), 8, 9, {.op_sel = select}),
                                          encode::vop3("v_permlanex16_b32", 7, v(1), 8, 9, {.op_sel = select})})));
    for (unsigned lane = 0; lane < 64; ++lane) {
      INFO("op_sel " << select << ", lane " << lane);
      const unsigned nibble = (lane & 15) < 8 ? lane & 7 : 7 - (lane & 7);
      const auto expected = [&](unsigned from) {
        if ((exec >> lane & 1) == 0) return 900U;
        if ((select & 1) != 0 || (exec >> from & 1) != 0) return 1000 + from;
        return (select & 2) != 0 ? 0U : 900U;
      };
      CHECK(bench.vgpr(6, lane) == expected((lane & 48) | nibble));
      CHECK(bench.vgpr(7, lane) == expected(((lane & 48) ^ 16) | nibble));
    }
  }
}

TEST_CASE("simulator: registers found by M0 stay within the wave's", "[simulator][wave]") {
  Bench bench;
  bench.set_exec(0xFFFFFFFE);
  bench.set_vgpr(7, 77);
  bench.set_vgpr(2, 22);
  bench.set_vgpr(3, 33);
  bench.sgpr(operand::m0) = 5;
  REQUIRE_FALSE(bench.run({encode::vop1("v_movrels_b32", 0, v(2)), encode::vop1("v_movreld_b32", 4, v(3)),
                           encode::vop1("v_swap_b32", 2, v(3))}));
  CHECK(bench.vgpr(0, 1) == 77);
  CHECK(bench.vgpr(9, 1) == 33);
  CHECK(bench.vgpr(2, 1) == 33);
  CHECK(bench.vgpr(3, 1) == 22);
  CHECK(bench.vgpr(2, 0) == 22);
  CHECK(bench.vgpr(3, 0) == 33);
  bench.sgpr(operand::m0) = 0;  // the first register is one of the wave's, too
  bench.set_vgpr(0, 11);
  REQUIRE_FALSE(bench.run({encode::vop1("v_movrels_b32", 5, v(0)), encode::vop1("v_movreld_b32", 0, v(7))}));
  CHECK(bench.vgpr(5, 1) == 11);
  CHECK(bench.vgpr(0, 1) == 77);
  for (const U m0 : {62U, 0x40'003EU}) {  // of all bits, but for moves of two fields
    bench.sgpr(operand::m0) = m0;
    for (const auto& [name, to, from] : {std::tuple{"v_movrels_b32", 0U, 2U}, {"v_movreld_b32", 2U, 0U}}) {
      const std::optional<Fault> fault = bench.run({encode::vop1(name, to, v(from))});
      INFO(name << " " << m0);
      REQUIRE(fault);
      CHECK(fault->kind == FaultKind::overrun);
      CHECK(fault->reason.find(m0 == 62 ? "v64 of 64" : "v4194368 of 64") != std::string::npos);
    }
  }
}

TEST_CASE("simulator VOPD: both halves read before either writes", "[simulator][wave]") {
  // v_dual_mov v0, v1 :: v_dual_mov v1, v0 exchanges; with adds of each other's destination too.
  constexpr U mov = 8, add = 4, add_nc = 16;
  const auto dual = [](U opx, U opy, U dstx, U dsty, U src0x, U src1x, U src0y, U src1y) {
    return std::vector<U>{0x32U << 26 | opx << 22 | opy << 17 | src1x << 9 | src0x,
                          dstx << 24 | dsty >> 1 << 17 | src1y << 9 | src0y};
  };
  Bench bench;
  bench.set_vgpr(0, 0x3F800000);
  bench.set_vgpr(1, 0x40000000);
  REQUIRE_FALSE(bench.run(encode::join({dual(mov, mov, 0, 1, v(1), 0, v(0), 0)})));
  CHECK(bench.vgpr(0, 3) == 0x40000000);
  CHECK(bench.vgpr(1, 3) == 0x3F800000);
  REQUIRE_FALSE(bench.run(dual(add, add_nc, 0, 1, v(1), 0, v(0), 1)));  // v0 = v1 + v0 :: v1 = v0 + v1, as integers
  CHECK(bench.vgpr(0, 3) == 0x40400000);
  CHECK(bench.vgpr(1, 3) == 0x40000000U + 0x3F800000U);
  bench.set_vgpr(3, 33);
  REQUIRE_FALSE(bench.run(dual(mov, mov, 0, 1, v(3), 0, v(0), 0)));  // the second reads what the first writes
  CHECK(bench.vgpr(0, 3) == 33);
  CHECK(bench.vgpr(1, 3) == 0x40400000);
}

TEST_CASE("simulator DPP: compares of lanes without a source leave EXEC as it was", "[simulator][wave]") {
  for (const bool writes_exec : {false, true}) {
    Bench bench;
    for (unsigned lane = 0; lane < 32; ++lane) bench.vgpr(1, lane) = 5 + lane, bench.vgpr(2, lane) = 4 + lane;
    bench.sgpr(operand::vcc_lo) = 0xAAAA;
    bench.set_exec(0x7FFFFFFF);
    const char* name = writes_exec ? "v_cmpx_eq_u32" : "v_cmp_eq_u32";
    REQUIRE_FALSE(bench.run({encode::vopc(name, dpp16, v(2)), dpp_word(1, 0x111, false, false)}));
    CHECK(bench.exec() == (writes_exec ? 0x7FFEFFFEU : 0x7FFFFFFFU));
    CHECK(bench.sgpr(operand::vcc_lo) == (writes_exec ? 0xAAAAU : 0x7FFEFFFEU));
  }
}

}  // namespace kiln::simulator::test
