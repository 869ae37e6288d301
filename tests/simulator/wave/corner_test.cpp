// Corner operands: zeros, ones, extremes, denormals, infinities, both kinds of NaN, shifts by the width and beyond. The
// expected values follow the formulas of AMD's instruction set references, written anew here.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/simulator/wave/bench.hpp"
#include "tests/simulator/wave/corners.hpp"

namespace kiln::simulator::test {
namespace {

using encode::v;
using U = std::uint32_t;
using I = std::int32_t;
using W = std::uint64_t;
using L = std::int64_t;

}  // namespace

TEST_CASE("simulator corners: scalar comparisons and bits", "[simulator][corners]") {
  struct Compare {
    const char *name, *with_constant;
    bool is_signed;
    unsigned mask;
  };
  const Compare compares[] = {{"s_cmp_eq_i32", "s_cmpk_eq_i32", true, 2},  {"s_cmp_lg_i32", "s_cmpk_lg_i32", true, 5},
                              {"s_cmp_gt_i32", "s_cmpk_gt_i32", true, 4},  {"s_cmp_ge_i32", "s_cmpk_ge_i32", true, 6},
                              {"s_cmp_lt_i32", "s_cmpk_lt_i32", true, 1},  {"s_cmp_le_i32", "s_cmpk_le_i32", true, 3},
                              {"s_cmp_eq_u32", "s_cmpk_eq_u32", false, 2}, {"s_cmp_lg_u32", "s_cmpk_lg_u32", false, 5},
                              {"s_cmp_gt_u32", "s_cmpk_gt_u32", false, 4}, {"s_cmp_ge_u32", "s_cmpk_ge_u32", false, 6},
                              {"s_cmp_lt_u32", "s_cmpk_lt_u32", false, 1}, {"s_cmp_le_u32", "s_cmpk_le_u32", false, 3}};
  constexpr unsigned zero = 128, one = 129;
  const std::uint32_t keep_scc = encode::sop2("s_cselect_b32", 30, one, zero);
  Bench bench;
  const auto scc_of = [&](std::uint32_t word) {
    REQUIRE_FALSE(bench.run({word, keep_scc}));
    return bench.sgpr(30) == 1;
  };
  for (const Compare& compare : compares) {
    const Type type = compare.is_signed ? Type::i32 : Type::u32;
    for (const U a : corners32) {
      for (const U b : corners32) {
        bench.sgpr(2) = a, bench.sgpr(3) = b;
        INFO(compare.name << std::hex << " " << a << " " << b);
        CHECK(scc_of(encode::sopc(compare.name, 2, 3)) == ((order_of(type, a, b) & compare.mask) != 0));
      }
      for (const U b : {0U, 1U, 0x7FFFU, 0x8000U, 0xFFFFU}) {
        const U wide = compare.is_signed ? static_cast<U>(static_cast<std::int16_t>(b)) : b;
        bench.sgpr(2) = a;
        INFO(compare.with_constant << std::hex << " " << a << " " << b);
        CHECK(scc_of(encode::sopk(compare.with_constant, 2, static_cast<std::int16_t>(b))) ==
              ((order_of(type, a, wide) & compare.mask) != 0));
      }
    }
  }
  for (const W a : corners64) {
    for (const W b : corners64) {
      bench.set_sgpr64(2, a), bench.set_sgpr64(4, b);
      INFO(std::hex << a << " " << b);
      CHECK(scc_of(encode::sopc("s_cmp_eq_u64", 2, 4)) == (a == b));
      CHECK(scc_of(encode::sopc("s_cmp_lg_u64", 2, 4)) == (a != b));
    }
    for (const U bit : {0U, 1U, 31U, 32U, 33U, 63U, 64U, 0xFFFFFFFFU}) {
      bench.set_sgpr64(2, a), bench.sgpr(4) = bit;
      INFO(std::hex << a << " bit " << bit);
      const bool of_32 = (a >> bit % 32 & 1) != 0, of_64 = (a >> bit % 64 & 1) != 0;
      CHECK(scc_of(encode::sopc("s_bitcmp0_b32", 2, 4)) == !of_32);
      CHECK(scc_of(encode::sopc("s_bitcmp1_b32", 2, 4)) == of_32);
      CHECK(scc_of(encode::sopc("s_bitcmp0_b64", 2, 4)) == !of_64);
      CHECK(scc_of(encode::sopc("s_bitcmp1_b64", 2, 4)) == of_64);
    }
  }
}

TEST_CASE("simulator corners: integers of 16 bits", "[simulator][corners]") {
  struct Case {
    const char* name;
    unsigned sources;
    U (*expected)(U, U, U);
  };
  const Case cases[] = {
      {"v_add_nc_u16", 2, [](U a, U b, U) { return a + b; }},
      {"v_sub_nc_u16", 2, [](U a, U b, U) { return a - b; }},
      {"v_add_nc_i16", 2, [](U a, U b, U) { return a + b; }},
      {"v_sub_nc_i16", 2, [](U a, U b, U) { return a - b; }},
      {"v_mul_lo_u16", 2, [](U a, U b, U) { return a * b; }},
      {"v_mad_u16", 3, [](U a, U b, U c) { return a * b + c; }},
      {"v_mad_i16", 3, [](U a, U b, U c) { return a * b + c; }},
      {"v_max_u16", 2, [](U a, U b, U) { return std::max(a, b); }},
      {"v_min_u16", 2, [](U a, U b, U) { return std::min(a, b); }},
      {"v_max_i16", 2, [](U a, U b, U) { return static_cast<std::int16_t>(a) > static_cast<std::int16_t>(b) ? a : b; }},
      {"v_min_i16", 2, [](U a, U b, U) { return static_cast<std::int16_t>(a) < static_cast<std::int16_t>(b) ? a : b; }},
      {"v_max3_u16", 3,
       [](U a, U b, U c) {
         return std::max({a, b, c});
       }},
      {"v_min3_u16", 3,
       [](U a, U b, U c) {
         return std::min({a, b, c});
       }},
      {"v_med3_u16", 3, [](U a, U b, U c) { return std::max(std::min(a, b), std::min(std::max(a, b), c)); }},
      // Signed order is unsigned order with the sign turned.
      {"v_max3_i16", 3,
       [](U a, U b, U c) {
         return std::max({a ^ 0x8000, b ^ 0x8000, c ^ 0x8000}) ^ 0x8000;
       }},
      {"v_min3_i16", 3,
       [](U a, U b, U c) {
         return std::min({a ^ 0x8000, b ^ 0x8000, c ^ 0x8000}) ^ 0x8000;
       }},
      {"v_med3_i16", 3,
       [](U a, U b, U c) {
         a ^= 0x8000, b ^= 0x8000, c ^= 0x8000;
         return std::max(std::min(a, b), std::min(std::max(a, b), c)) ^ 0x8000;
       }},
      {"v_lshlrev_b16", 2, [](U a, U b, U) { return b << a % 16; }},
      {"v_lshrrev_b16", 2, [](U a, U b, U) { return b >> a % 16; }},
      {"v_ashrrev_i16", 2, [](U a, U b, U) { return static_cast<U>(static_cast<std::int16_t>(b) >> a % 16); }},
      {"v_and_b16", 2, [](U a, U b, U) { return a & b; }},
      {"v_or_b16", 2, [](U a, U b, U) { return a | b; }},
      {"v_xor_b16", 2, [](U a, U b, U) { return a ^ b; }},
      {"v_not_b16", 1, [](U a, U, U) { return ~a; }},
  };
  for (const Case& c : cases) {
    Bench bench;
    for (unsigned i = 0; i < 32; ++i) {
      for (unsigned lane = 0; lane < 32; ++lane) {
        bench.vgpr(1, lane) = corners16[lane] | 0xABCD0000;  // the upper halves are no operands
        bench.vgpr(2, lane) = corners16[i] | 0xDCBA0000;
        bench.vgpr(3, lane) = corners16[(lane + 7 * i) % 32] | 0x12340000;
      }
      REQUIRE_FALSE(bench.run(encode::vop3(c.name, 0, v(1), c.sources > 1 ? v(2) : 0, c.sources > 2 ? v(3) : 0)));
      for (unsigned lane = 0; lane < 32; ++lane) {
        const U a = corners16[lane], b = corners16[i], third = corners16[(lane + 7 * i) % 32];
        INFO(c.name << std::hex << " " << a << " " << b << " " << third);
        CHECK((bench.vgpr(0, lane) & 0xFFFF) == (c.expected(a, b, third) & 0xFFFF));
      }
    }
  }
  for (unsigned i = 0; i < 32; ++i) {
    Bench bench;
    bench.set_vgpr(1, corners16[i] | 0xABCD0000);
    REQUIRE_FALSE(bench.run({encode::vop1("v_cvt_i32_i16", 2, v(1)), encode::vop1("v_cvt_u32_u16", 3, v(1))}));
    CHECK(bench.vgpr(2, 5) == static_cast<U>(static_cast<std::int16_t>(corners16[i])));
    CHECK(bench.vgpr(3, 5) == corners16[i]);
  }
}

TEST_CASE("simulator corners: shifts, fields and saturation of 32 and 64 bits", "[simulator][corners]") {
  Bench bench;
  const auto saturated = [](L value) { return static_cast<U>(std::clamp<L>(value, INT32_MIN, INT32_MAX)); };
  for (const U a : corners32) {
    for (const U b : corners32) {
      bench.set_vgpr(1, a), bench.set_vgpr(2, b);
      bench.set_vgpr64(4, 0, W{b} << 32 | a);
      encode::Vop3Modifiers clamp;
      clamp.clamp = true;
      REQUIRE_FALSE(bench.run(encode::join(
          {encode::vop3("v_lshlrev_b32", 10, v(1), v(2)), encode::vop3("v_lshrrev_b32", 11, v(1), v(2)),
           encode::vop3("v_ashrrev_i32", 12, v(1), v(2)), encode::vop3("v_lshlrev_b64", 14, v(1), v(4)),
           encode::vop3("v_lshrrev_b64", 16, v(1), v(4)), encode::vop3("v_ashrrev_i64", 18, v(1), v(4)),
           encode::vop3("v_add_nc_i32", 20, v(1), v(2)), encode::vop3("v_sub_nc_i32", 21, v(1), v(2)),
           encode::vop3("v_add_nc_i32", 22, v(1), v(2), 0, clamp),
           encode::vop3("v_sub_nc_i32", 23, v(1), v(2), 0, clamp), encode::vop3("v_bfm_b32", 24, v(1), v(2)),
           encode::vop3("v_add_nc_u32", 25, v(1), v(2), 0, clamp),
           encode::vop3("v_sub_nc_u32", 26, v(1), v(2), 0, clamp)})));
      INFO(std::hex << a << " " << b);
      const W both = W{b} << 32 | a;
      CHECK(bench.vgpr(10, 0) == b << a % 32);
      CHECK(bench.vgpr(11, 0) == b >> a % 32);
      CHECK(bench.vgpr(12, 0) == static_cast<U>(static_cast<I>(b) >> a % 32));
      CHECK(bench.vgpr64(14, 0) == both << a % 64);
      CHECK(bench.vgpr64(16, 0) == both >> a % 64);
      CHECK(bench.vgpr64(18, 0) == static_cast<W>(static_cast<L>(both) >> a % 64));
      CHECK(bench.vgpr(20, 0) == a + b);
      CHECK(bench.vgpr(21, 0) == a - b);
      CHECK(bench.vgpr(22, 0) == saturated(L{static_cast<I>(a)} + static_cast<I>(b)));
      CHECK(bench.vgpr(23, 0) == saturated(L{static_cast<I>(a)} - static_cast<I>(b)));
      CHECK(bench.vgpr(24, 0) == ((1U << a % 32) - 1) << b % 32);
      CHECK(bench.vgpr(25, 0) == (W{a} + b > 0xFFFFFFFF ? 0xFFFFFFFF : a + b));
      CHECK(bench.vgpr(26, 0) == (a < b ? 0 : a - b));
    }
  }
  // Sign fill: the field 0xF at bits 4 to 7 is -1, 0x7 is 7; a width of zero is zero; a field is cut at bit 31.
  struct Field {
    U value, offset, width, as_signed, as_unsigned;
  };
  for (const Field& field : {Field{0xF0, 4, 4, 0xFFFFFFFF, 0xF}, Field{0x70, 4, 4, 7, 7}, Field{0xFFFFFFFF, 0, 0, 0, 0},
                             Field{0x80000000, 31, 1, 0xFFFFFFFF, 1}, Field{0x80000000, 31, 5, 0xFFFFFFFF, 1},
                             Field{0x40000000, 28, 8, 4, 4}, Field{1, 0, 1, 0xFFFFFFFF, 1},
                             Field{0x12345678, 0, 31, 0x12345678, 0x12345678}, Field{0xF0, 36, 36, 0xFFFFFFFF, 0xF}}) {
    bench.set_vgpr(1, field.value), bench.set_vgpr(2, field.offset), bench.set_vgpr(3, field.width);
    REQUIRE_FALSE(bench.run(encode::join(
        {encode::vop3("v_bfe_i32", 10, v(1), v(2), v(3)), encode::vop3("v_bfe_u32", 11, v(1), v(2), v(3))})));
    INFO(std::hex << field.value << " from " << field.offset << " width " << field.width);
    CHECK(bench.vgpr(10, 0) == field.as_signed);
    CHECK(bench.vgpr(11, 0) == field.as_unsigned);
  }
}

TEST_CASE("simulator corners: masks of rows and of banks of four lanes", "[simulator][corners]") {
  constexpr unsigned dpp16 = 250, same_lane = 0xE4;
  for (unsigned banks = 0; banks < 16; ++banks) {
    for (const unsigned rows : {0U, 1U, 2U, 3U, 15U}) {
      Bench bench;
      for (unsigned lane = 0; lane < 32; ++lane) bench.vgpr(1, lane) = lane;
      bench.set_vgpr(0, 900);
      REQUIRE_FALSE(
          bench.run({encode::vop1("v_mov_b32", 0, dpp16), 1U | same_lane << 8 | 1U << 19 | banks << 24 | rows << 28}));
      for (unsigned lane = 0; lane < 32; ++lane) {
        const bool written = (banks >> lane % 16 / 4 & 1) != 0 && (rows >> lane / 16 & 1) != 0;
        INFO("banks " << banks << " rows " << rows << " lane " << lane);
        CHECK(bench.vgpr(0, lane) == (written ? lane : 900));
      }
    }
  }
}

TEST_CASE("simulator corners: minima and maxima of NaNs, zeros and infinities", "[simulator][corners]") {
  // A NaN yields to the other operand; if both are, the second is answered. IEEE mode: a signaling one is answered,
  // quiet.
  struct Row {
    W a, b, least, most;
  };
  struct Table {
    const char *least, *most;
    Type type;
    std::vector<Row> rows;
  };
  const Table tables[] = {{"v_min_f32",
                           "v_max_f32",
                           Type::f32,
                           {{0x7FC00001, 0xFFC00002, 0xFFC00002, 0xFFC00002},
                            {0xFFC00002, 0x7FC00001, 0x7FC00001, 0x7FC00001},
                            {0x7F800001, 0x7FC00002, 0x7FC00001, 0x7FC00001},
                            {0x7FC00002, 0x3F800000, 0x3F800000, 0x3F800000},
                            {0x3F800000, 0xFFC00002, 0x3F800000, 0x3F800000},
                            {0x80000000, 0, 0x80000000, 0},
                            {0xFF800000, 0x7F800000, 0xFF800000, 0x7F800000},
                            {1, 0x80000001, 0x80000001, 1}}},
                          {"v_min_f16",
                           "v_max_f16",
                           Type::f16,
                           {{0x7E01, 0xFE02, 0xFE02, 0xFE02},
                            {0xFE02, 0x7E01, 0x7E01, 0x7E01},
                            {0x7E02, 0x3C00, 0x3C00, 0x3C00},
                            {0x3C00, 0xFE02, 0x3C00, 0x3C00},
                            {0x8000, 0, 0x8000, 0},
                            {0xFC00, 0x7C00, 0xFC00, 0x7C00},
                            {1, 0x8001, 0x8001, 1}}},
                          {"v_min_f64",
                           "v_max_f64",
                           Type::f64,
                           {{0x7FF8000000000001, 0xFFF8000000000002, 0xFFF8000000000002, 0xFFF8000000000002},
                            {0xFFF8000000000002, 0x7FF8000000000001, 0x7FF8000000000001, 0x7FF8000000000001},
                            {0x7FF8000000000002, 0x3FF0000000000000, 0x3FF0000000000000, 0x3FF0000000000000},
                            {0x3FF0000000000000, 0xFFF8000000000002, 0x3FF0000000000000, 0x3FF0000000000000},
                            {0x8000000000000000, 0, 0x8000000000000000, 0},
                            {0xFFF0000000000000, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF0000000000000},
                            {1, 0x8000000000000001, 0x8000000000000001, 1}}}};
  for (const Table& table : tables) {
    for (const Row& row : table.rows) {
      Bench bench;
      set_operand(bench, 2, 3, table.type, row.a);
      set_operand(bench, 4, 3, table.type, row.b);
      REQUIRE_FALSE(bench.run(
          encode::join({encode::vop3(table.least, 10, v(2), v(4)), encode::vop3(table.most, 12, v(2), v(4))})));
      const auto found = [&](unsigned index) {
        return bits_of(table.type) == 64   ? bench.vgpr64(index, 3)
               : bits_of(table.type) == 16 ? W{bench.vgpr(index, 3)} & 0xFFFF
                                           : W{bench.vgpr(index, 3)};
      };
      INFO(table.least << std::hex << " " << row.a << " " << row.b);
      CHECK(found(10) == row.least);
      CHECK(found(12) == row.most);
    }
  }
}

TEST_CASE("simulator corners: one operand of f16 and f64", "[simulator][corners]") {
  struct Row {
    const char* name;
    W operand, expected;
  };
  const Row halves[] = {{"v_floor_f16", 0x3E00, 0x3C00},
                        {"v_floor_f16", 0xBE00, 0xC000},
                        {"v_floor_f16", 0x8001, 0xBC00},
                        {"v_floor_f16", 0x0001, 0x0000},
                        {"v_floor_f16", 0x8000, 0x8000},
                        {"v_floor_f16", 0xFC00, 0xFC00},
                        {"v_ceil_f16", 0x3E00, 0x4000},
                        {"v_ceil_f16", 0xBE00, 0xBC00},
                        {"v_ceil_f16", 0x0001, 0x3C00},
                        {"v_ceil_f16", 0x8001, 0x8000},
                        {"v_ceil_f16", 0x7C00, 0x7C00},
                        {"v_trunc_f16", 0xBE00, 0xBC00},
                        {"v_trunc_f16", 0x3BFF, 0x0000},
                        {"v_trunc_f16", 0xBBFF, 0x8000},
                        {"v_trunc_f16", 0x7BFF, 0x7BFF},
                        {"v_rndne_f16", 0x3800, 0x0000},
                        {"v_rndne_f16", 0x3E00, 0x4000},
                        {"v_rndne_f16", 0x4100, 0x4000},
                        {"v_rndne_f16", 0xB800, 0x8000},
                        {"v_rndne_f16", 0xBE00, 0xC000},
                        {"v_fract_f16", 0x3E00, 0x3800},
                        {"v_fract_f16", 0xBD00, 0x3A00},
                        {"v_fract_f16", 0x0001, 0x0001},
                        {"v_rcp_f16", 0x4000, 0x3800},
                        {"v_rcp_f16", 0x0000, 0x7C00},
                        {"v_rcp_f16", 0x8000, 0xFC00},
                        {"v_rcp_f16", 0x7C00, 0x0000},
                        {"v_rcp_f16", 0xFC00, 0x8000},
                        {"v_sqrt_f16", 0x4400, 0x4000},
                        {"v_sqrt_f16", 0x8000, 0x8000},
                        {"v_sqrt_f16", 0x7C00, 0x7C00},
                        {"v_rsq_f16", 0x4400, 0x3800},
                        {"v_rsq_f16", 0x0000, 0x7C00},
                        {"v_log_f16", 0x4400, 0x4000},
                        {"v_log_f16", 0x0000, 0xFC00},
                        {"v_log_f16", 0x3C00, 0x0000},
                        {"v_exp_f16", 0x4000, 0x4400},
                        {"v_exp_f16", 0xFC00, 0x0000},
                        {"v_exp_f16", 0x0000, 0x3C00},
                        {"v_exp_f16", 0x7C00, 0x7C00},
                        {"v_frexp_mant_f16", 0x4400, 0x3800},
                        {"v_frexp_mant_f16", 0x0001, 0x3800},
                        {"v_frexp_mant_f16", 0xC200, 0xBA00},
                        {"v_frexp_exp_i16_f16", 0x4400, 3},
                        {"v_frexp_exp_i16_f16", 0x0001, 0xFFE9},
                        {"v_frexp_exp_i16_f16", 0x0000, 0},
                        {"v_frexp_exp_i16_f16", 0x7C00, 0},
                        {"v_cvt_f16_u16", 0xFFFF, 0x7C00},
                        {"v_cvt_f16_u16", 1, 0x3C00},
                        {"v_cvt_f16_u16", 0x8000, 0x7800},
                        {"v_cvt_f16_i16", 0x8000, 0xF800},
                        {"v_cvt_f16_i16", 0xFFFF, 0xBC00},
                        {"v_cvt_u16_f16", 0xBC00, 0},
                        {"v_cvt_u16_f16", 0x7C00, 0xFFFF},
                        {"v_cvt_u16_f16", 0x7E00, 0},
                        {"v_cvt_u16_f16", 0x3E00, 1},
                        {"v_cvt_i16_f16", 0xBE00, 0xFFFF},
                        {"v_cvt_i16_f16", 0x7C00, 0x7FFF},
                        {"v_cvt_i16_f16", 0xFC00, 0x8000},
                        {"v_cvt_i16_f16", 0x7E00, 0},
                        {"v_cvt_norm_i16_f16", 0x3C00, 0x7FFF},
                        {"v_cvt_norm_i16_f16", 0xBC00, 0x8001},
                        {"v_cvt_norm_i16_f16", 0x4000, 0x7FFF},
                        {"v_cvt_norm_i16_f16", 0x7E00, 0},
                        {"v_cvt_norm_u16_f16", 0x3C00, 0xFFFF},
                        {"v_cvt_norm_u16_f16", 0xBC00, 0},
                        {"v_cvt_norm_u16_f16", 0x7E00, 0}};
  for (const Row& row : halves) {
    Bench bench;
    bench.set_vgpr(1, static_cast<U>(row.operand) | 0x7E000000);
    REQUIRE_FALSE(bench.run({encode::vop1(row.name, 2, v(1))}));
    INFO(row.name << std::hex << " " << row.operand);
    CHECK((bench.vgpr(2, 9) & 0xFFFF) == row.expected);
  }
  const Row doubles[] = {{"v_ceil_f64", 0x3FF8000000000000, 0x4000000000000000},
                         {"v_ceil_f64", 0xBFE0000000000000, 0x8000000000000000},
                         {"v_ceil_f64", 0x0000000000000001, 0x3FF0000000000000},
                         {"v_floor_f64", 0x8000000000000001, 0xBFF0000000000000},
                         {"v_trunc_f64", 0xBFF8000000000000, 0xBFF0000000000000},
                         {"v_rndne_f64", 0x3FE0000000000000, 0x0000000000000000},
                         {"v_rndne_f64", 0x4004000000000000, 0x4000000000000000},
                         {"v_rndne_f64", 0x3FF8000000000000, 0x4000000000000000},
                         {"v_fract_f64", 0xBFF4000000000000, 0x3FE8000000000000},
                         {"v_fract_f64", 0x4004000000000000, 0x3FE0000000000000},
                         {"v_sqrt_f64", 0x4010000000000000, 0x4000000000000000},
                         {"v_sqrt_f64", 0x8000000000000000, 0x8000000000000000},
                         {"v_sqrt_f64", 0x7FF0000000000000, 0x7FF0000000000000},
                         {"v_frexp_mant_f64", 0x4010000000000000, 0x3FE0000000000000},
                         {"v_frexp_mant_f64", 0x0000000000000001, 0x3FE0000000000000},
                         {"v_frexp_mant_f64", 0x7FF0000000000000, 0x7FF0000000000000}};
  for (const Row& row : doubles) {
    Bench bench;
    bench.set_vgpr64(2, 9, row.operand);
    REQUIRE_FALSE(bench.run({encode::vop1(row.name, 4, v(2))}));
    INFO(row.name << std::hex << " " << row.operand);
    CHECK(bench.vgpr64(4, 9) == row.expected);
  }
  Bench bench;
  bench.set_vgpr(1, 0xFF80017F);
  REQUIRE_FALSE(bench.run({encode::vop1("v_cvt_f32_ubyte0", 2, v(1)), encode::vop1("v_cvt_f32_ubyte1", 3, v(1)),
                           encode::vop1("v_cvt_f32_ubyte2", 4, v(1)), encode::vop1("v_cvt_f32_ubyte3", 5, v(1)),
                           encode::vop1("v_sat_pk_u8_i16", 6, v(1))}));
  CHECK(bench.vgpr(2, 0) == 0x42FE0000);         // 127
  CHECK(bench.vgpr(3, 0) == 0x3F800000);         // 1
  CHECK(bench.vgpr(4, 0) == 0x43000000);         // 128
  CHECK(bench.vgpr(5, 0) == 0x437F0000);         // 255
  CHECK((bench.vgpr(6, 0) & 0xFFFF) == 0x00FF);  // 0x017F is above 255, 0xFF80 below 0
}

}  // namespace kiln::simulator::test
