// Instructions with operands and results as literals, worked out by hand from AMD's instruction set references.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tests/simulator/wave/bench.hpp"

namespace kiln::simulator::test {
namespace {

using encode::v;
using U = std::uint32_t;
using W = std::uint64_t;

struct Row {
  const char* name;
  W a, b, c, expected;
};

constexpr U one = 0x3F800000, two = 0x40000000, three = 0x40400000, seven = 0x40E00000, nan = 0x7FC00000,
            infinite = 0x7F800000, lowest = 0xFF7FFFFF, minus = 0x80000000;

const OpcodeInfo& opcode_named(const char* name) {
  unsigned i = 1;
  while (info(static_cast<Opcode>(i)).name != name) {
    if (++i == static_cast<unsigned>(Opcode::count)) FAIL("no opcode " << name);
  }
  return info(static_cast<Opcode>(i));
}

// In the VOP3 form: v2, v4 and v6, as many as it reads, with v8 before and after.
W result_of(const char* name, W a, W b, W c, W before = 0) {
  Bench bench;
  bench.set_vgpr64(2, 5, a);
  bench.set_vgpr64(4, 5, b);
  bench.set_vgpr64(6, 5, c);
  bench.set_vgpr64(8, 5, before);
  const OpcodeInfo& opcode = opcode_named(name);
  const auto source = [&](unsigned i) { return opcode.src[i] == DataType::none ? 0 : v(2 + 2 * i); };
  const bool carries = (opcode.flags & flag::carry_out) != 0;
  INFO(name << std::hex << " " << a << " " << b << " " << c);
  REQUIRE_FALSE(bench.run(carries ? encode::vop3sd(name, 8, 20, source(0), source(1), source(2))
                                  : encode::vop3(name, 8, source(0), source(1), source(2))));
  return bench.vgpr64(8, 5);
}

template <std::size_t Count>
void check(const Row (&rows)[Count], W mask) {
  for (const Row& row : rows) {
    INFO(row.name << std::hex << " " << row.a << " " << row.b << " " << row.c);
    CHECK((result_of(row.name, row.a, row.b, row.c) & mask) == row.expected);
  }
}

float number(U bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
U bits(float value) {
  U result = 0;
  std::memcpy(&result, &value, sizeof result);
  return result;
}

}  // namespace

TEST_CASE("simulator values: results of 16 bits", "[simulator][values]") {
  const Row rows[] = {
      {"v_sub_f16", 0x3C00, 0x3800, 0, 0x3800},
      {"v_sub_f16", 0x7BFF, 0xFBFF, 0, 0x7C00},
      {"v_subrev_f16", 0x3800, 0x3C00, 0, 0x3800},
      {"v_subrev_f16", 0x3C00, 0x3800, 0, 0xB800},
      {"v_max3_f16", 0x3C00, 0x4000, 0xBC00, 0x4000},
      {"v_max3_f16", 0xBC00, 0x3C00, 0x4000, 0x4000},
      {"v_max3_f16", 0x7E00, 0x3C00, 0xBC00, 0x3C00},
      {"v_min3_f16", 0x3C00, 0x4000, 0xBC00, 0xBC00},
      {"v_min3_f16", 0xBC00, 0x4000, 0x3C00, 0xBC00},
      {"v_min3_f16", 0x7E00, 0x3C00, 0xBC00, 0xBC00},
      {"v_med3_f16", 0x3C00, 0x4000, 0xBC00, 0x3C00},
      {"v_med3_f16", 0x4000, 0xBC00, 0x3C00, 0x3C00},
      {"v_med3_f16", 0xBC00, 0x3C00, 0x4000, 0x3C00},
      {"v_med3_f16", 0x3C00, 0x7E00, 0xBC00, 0xBC00},  // with a NaN, the least
      {"v_minmax_f16", 0x3C00, 0x4000, 0x3800, 0x3C00},
      {"v_minmax_f16", 0x3C00, 0x4000, 0x4200, 0x4200},
      {"v_maxmin_f16", 0x3C00, 0x4000, 0x3800, 0x3800},
      {"v_maxmin_f16", 0x3C00, 0x4000, 0x4200, 0x4000},
      {"v_ldexp_f16", 0x3C00, 3, 0, 0x4800},
      {"v_ldexp_f16", 0x3C00, 0xFFF8, 0, 0x1C00},
      {"v_ldexp_f16", 0x3C00, 0xFFE8, 0, 0x0001},
      {"v_ldexp_f16", 0x7BFF, 1, 0, 0x7C00},
      {"v_ldexp_f16", 0x0001, 39, 0, 0x7800},
      {"v_ldexp_f16", 0xBC00, 0x8000, 0, 0x8000},
      {"v_ldexp_f16", 0x3C00, 0x7FFF, 0, 0x7C00},
      {"v_sin_f16", 0x3400, 0, 0, 0x3C00},  // a quarter of a turn
      {"v_sin_f16", 0xB400, 0, 0, 0xBC00},
      {"v_cos_f16", 0x3800, 0, 0, 0xBC00},
      {"v_cos_f16", 0x0000, 0, 0, 0x3C00},
      // A quotient, the denominator, the numerator.
      {"v_div_fixup_f16", 0x3C00, 0x3C00, 0x7D01, 0x7F01},
      {"v_div_fixup_f16", 0x3C00, 0xFD01, 0x3C00, 0xFF01},
      {"v_div_fixup_f16", 0x3C00, 0x0000, 0x8000, 0xFE00},
      {"v_div_fixup_f16", 0x3C00, 0x7C00, 0xFC00, 0xFE00},
      {"v_div_fixup_f16", 0x3C00, 0x0000, 0xBC00, 0xFC00},
      {"v_div_fixup_f16", 0x3C00, 0x8000, 0xBC00, 0x7C00},
      {"v_div_fixup_f16", 0x3C00, 0x3C00, 0xFC00, 0xFC00},
      {"v_div_fixup_f16", 0x3C00, 0xFC00, 0x3C00, 0x8000},
      {"v_div_fixup_f16", 0x3C00, 0x3C00, 0x8000, 0x8000},
      {"v_div_fixup_f16", 0x3C00, 0x4000, 0x0000, 0x0000},
      {"v_div_fixup_f16", 0x3C00, 0xC000, 0x4000, 0xBC00},
      {"v_div_fixup_f16", 0xBC00, 0x4000, 0x4000, 0x3C00},
  };
  check(rows, 0xFFFF);
  CHECK((result_of("v_fmac_f16", 0x4000, 0x4200, 0, 0x3C00) & 0xFFFF) == 0x4700);
}

TEST_CASE("simulator values: results of 32 bits", "[simulator][values]") {
  const Row rows[] = {
      {"v_minmax_f32", one, two, 0x3F000000, one},
      {"v_minmax_f32", one, two, three, three},
      {"v_maxmin_f32", one, two, 0x3F000000, 0x3F000000},
      {"v_maxmin_f32", one, two, three, two},
      {"v_ldexp_f32", one, 3, 0, 0x41000000},
      {"v_ldexp_f32", one, 0xFFFFFF82, 0, 0x00800000},
      {"v_ldexp_f32", 0xBF800000, 0x80000000, 0, minus},
      {"v_ldexp_f32", one, 0x7FFFFFFF, 0, infinite},
      {"v_pack_b32_f16", 0x3C00, 0xC000, 0, 0xC0003C00},
      {"v_cvt_pk_i16_f32", one, 0xC0000000, 0, 0xFFFE0001},
      {"v_cvt_pk_i16_f32", 0x47C35000, 0xC7C35000, 0, 0x80007FFF},  // 100000 and its negative
      {"v_cvt_pk_i16_f32", nan, 0x477FFF00, 0, 0x7FFF0000},
      {"v_cvt_pk_u16_f32", one, 0x47800000, 0, 0xFFFF0001},
      {"v_cvt_pk_u16_f32", 0xBF800000, 0x477FFF00, 0, 0xFFFF0000},
      {"v_cvt_pk_norm_i16_f32", one, 0xBF800000, 0, 0x80017FFF},
      {"v_cvt_pk_norm_i16_f32", 0x3E800000, 0xBE800000, 0, 0xE0002000},
      {"v_cvt_pk_norm_i16_f32", two, 0xC0000000, 0, 0x80017FFF},
      {"v_cvt_pk_norm_i16_f32", nan, 0, 0, 0},
      {"v_cvt_pk_norm_u16_f32", one, 0xBF800000, 0, 0x0000FFFF},
      {"v_cvt_pk_norm_u16_f32", 0x3E800000, 0x3F400000, 0, 0xBFFF4000},
      {"v_cvt_pk_norm_i16_f16", 0x3C00, 0xBC00, 0, 0x80017FFF},
      {"v_cvt_pk_norm_i16_f16", 0x3400, 0xB400, 0, 0xE0002000},
      {"v_cvt_pk_norm_u16_f16", 0x3C00, 0xBC00, 0, 0x0000FFFF},
      {"v_cvt_pk_norm_u16_f16", 0x3400, 0x3A00, 0, 0xBFFF4000},
      {"v_cvt_pk_rtz_f16_f32", one, 0xC0000000, 0, 0xC0003C00},
      {"v_cvt_pk_rtz_f16_f32", 0x3F801FFF, 0xBF801FFF, 0, 0xBC003C00},
      {"v_cvt_pk_rtz_f16_f32", 0x477FFFFF, 0x7F7FFFFF, 0, 0x7BFF7BFF},
      {"v_cvt_pk_rtz_f16_f32", infinite, 0x33800000, 0, 0x00017C00},
      {"v_cvt_pk_u8_f32", 0x42FE0000, 1, 0xFFFFFFFF, 0xFFFF7FFF},
      {"v_cvt_pk_u8_f32", 0x43960000, 3, 0, 0xFF000000},
      {"v_cvt_pk_u8_f32", 0xBF800000, 0, 0x12345678, 0x12345600},
      {"v_cvt_pk_u8_f32", one, 6, 0, 0x00010000},
      {"v_cvt_pk_u8_f32", nan, 2, 0xFFFFFFFF, 0xFF00FFFF},
      {"v_fma_dx9_zero_f32", 0, infinite, one, one},
      {"v_fma_dx9_zero_f32", nan, minus, two, two},
      {"v_fma_dx9_zero_f32", two, three, one, seven},
      {"v_rcp_iflag_f32", two, 0, 0, 0x3F000000},
      {"v_rcp_iflag_f32", minus, 0, 0, 0xFF800000},
      {"v_rcp_iflag_f32", 0xFF800000, 0, 0, minus},
      {"v_exp_f32", 0, 0, 0, one},
      {"v_exp_f32", one, 0, 0, two},
      {"v_exp_f32", 0xC0000000, 0, 0, 0x3E800000},
      {"v_exp_f32", 0x43000000, 0, 0, infinite},
      {"v_exp_f32", 0xFF800000, 0, 0, 0},
      {"v_cos_f32", 0, 0, 0, one},
      {"v_cos_f32", 0x3F000000, 0, 0, 0xBF800000},  // half a turn
      {"v_mullit_f32", two, three, one, 0x40C00000},
      {"v_mullit_f32", two, three, 0, lowest},
      {"v_mullit_f32", two, three, 0xBF800000, lowest},
      {"v_mullit_f32", two, lowest, one, lowest},
      {"v_mullit_f32", two, 0xFF800000, one, lowest},
      {"v_mullit_f32", two, nan, one, lowest},
      {"v_mullit_f32", two, three, nan, lowest},
      {"v_mullit_f32", 0, infinite, one, 0},
      {"v_mullit_f32", infinite, 0, one, 0},
  };
  check(rows, 0xFFFFFFFF);
  CHECK(static_cast<U>(result_of("v_fmac_dx9_zero_f32", two, three, 0, one)) == seven);
  CHECK(static_cast<U>(result_of("v_fmac_dx9_zero_f32", nan, 0, 0, two)) == two);
  CHECK(std::abs(number(static_cast<U>(result_of("v_sin_f32", 0x3DAAAAAB, 0, 0))) - 0.5F) < 1e-6F);
  CHECK(std::abs(number(static_cast<U>(result_of("v_cos_f32", 0x3E2AAAAB, 0, 0))) - 0.5F) < 1e-6F);
}

TEST_CASE("simulator values: results of 64 bits", "[simulator][values]") {
  const Row rows[] = {
      {"v_cvt_f64_f32", one, 0, 0, 0x3FF0000000000000},
      {"v_cvt_f64_f32", 0xC0490FDB, 0, 0, 0xC00921FB60000000},
      {"v_cvt_f64_f32", 0x7F7FFFFF, 0, 0, 0x47EFFFFFE0000000},
      {"v_cvt_f64_f32", 0xFF800000, 0, 0, 0xFFF0000000000000},
      {"v_cvt_f64_i32", 0x80000000, 0, 0, 0xC1E0000000000000},
      {"v_cvt_f64_i32", 0xFFFFFFFF, 0, 0, 0xBFF0000000000000},
      {"v_cvt_f64_i32", 0x7FFFFFFF, 0, 0, 0x41DFFFFFFFC00000},
      {"v_cvt_f64_u32", 0xFFFFFFFF, 0, 0, 0x41EFFFFFFFE00000},
      {"v_cvt_f64_u32", 0x80000000, 0, 0, 0x41E0000000000000},
      {"v_cvt_f64_u32", 1, 0, 0, 0x3FF0000000000000},
      {"v_rsq_f64", 0x4010000000000000, 0, 0, 0x3FE0000000000000},
      {"v_rsq_f64", 0, 0, 0, 0x7FF0000000000000},
  };
  check(rows, ~W{0});
  CHECK(result_of("v_mad_i64_i32", 0xFFFFFFFF, 2, 5) == 3);
  CHECK(result_of("v_mad_i64_i32", 0x80000000, 0x80000000, 0) == 0x4000000000000000);
  CHECK(result_of("v_mad_i64_i32", 0x80000000, 0x7FFFFFFF, 1) == 0xC000000080000001);
}

TEST_CASE("simulator values: the face of a cube, its coordinates and twice its axis", "[simulator][values]") {
  const float sides[] = {-3, -2, -1, 1, 2, 3};
  for (const float x : sides) {
    for (const float y : sides) {
      for (const float z : sides) {
        float face = x < 0 ? 1 : 0, s = x < 0 ? z : -z, t = -y, axis = x;
        if (std::abs(y) >= std::abs(x)) face = y < 0 ? 3 : 2, s = x, t = y < 0 ? -z : z, axis = y;
        if (std::abs(z) >= std::abs(x) && std::abs(z) >= std::abs(y)) {
          face = z < 0 ? 5 : 4, s = z < 0 ? -x : x, t = -y, axis = z;
        }
        INFO(x << " " << y << " " << z);
        const auto result = [&](const char* name) {
          return number(static_cast<U>(result_of(name, bits(x), bits(y), bits(z))));
        };
        CHECK(result("v_cubeid_f32") == face);
        CHECK(result("v_cubesc_f32") == s);
        CHECK(result("v_cubetc_f32") == t);
        CHECK(result("v_cubema_f32") == 2 * axis);
      }
    }
  }
}

TEST_CASE("simulator values: a literal among the operands", "[simulator][values]") {
  const auto run = [](const char* name, U a, U b, U word) {
    Bench bench;
    bench.set_vgpr(2, a);
    bench.set_vgpr(4, b);
    REQUIRE_FALSE(bench.run({encode::vop2(name, 8, v(2), v(4)), word}));
    return bench.vgpr(8, 5);
  };
  CHECK(run("v_fmaak_f32", two, three, one) == seven);              // 2 · 3 + literal 1
  CHECK(run("v_fmamk_f32", two, 0x40A00000, three) == 0x41300000);  // 2 · literal 3 + 5
  CHECK((run("v_fmaak_f16", 0x4000, 0x4200, 0x3C00) & 0xFFFF) == 0x4700);
  CHECK((run("v_fmamk_f16", 0x4000, 0x4500, 0x4200) & 0xFFFF) == 0x4980);
}

TEST_CASE("simulator values: two halves at once, and halves among words", "[simulator][values]") {
  const auto run = [](const char* name, U a, U b, U c, unsigned op_sel = 0, unsigned op_sel_hi = 7) {
    Bench bench;
    bench.set_vgpr(2, a);
    bench.set_vgpr(4, b);
    bench.set_vgpr(6, c);
    bench.set_vgpr(8, 0xAAAA5555);
    INFO(name);
    const unsigned third = opcode_named(name).src[2] == DataType::none ? 0 : v(6);
    REQUIRE_FALSE(bench.run(encode::vop3p(name, 8, v(2), v(4), third, op_sel, op_sel_hi)));
    return bench.vgpr(8, 5);
  };
  CHECK(run("v_pk_add_f16", 0x40003C00, 0x3C003C00, 0) == 0x42004000);
  CHECK(run("v_pk_mul_f16", 0x40004200, 0x4200C000, 0) == 0x4600C600);
  CHECK(run("v_pk_max_f16", 0x40003C00, 0x3C004000, 0) == 0x40004000);
  CHECK(run("v_pk_min_f16", 0x40003C00, 0x3C004000, 0) == 0x3C003C00);
  CHECK(run("v_pk_fma_f16", 0x40004200, 0x42004000, 0x3C00BC00) == 0x47004500);
  // Both sums of the high half of the first operand and the low half of the second.
  CHECK(run("v_pk_add_f16", 0x40003C00, 0x42004400, 0, 1, 1) == 0x46004600);
  Bench bench;
  bench.set_vgpr(2, 0x40004200);
  bench.set_vgpr(4, 0x42004000);
  bench.set_vgpr(8, 0x3C00BC00);
  REQUIRE_FALSE(bench.run({encode::vop2("v_pk_fmac_f16", 8, v(2), v(4))}));
  CHECK(bench.vgpr(8, 5) == 0x47004500);

  CHECK(run("v_fma_mix_f32", two, three, one, 0, 0) == seven);
  CHECK(run("v_fma_mix_f32", 0x42004000, three, one, 0, 1) == seven);       // the low half of the first, 2
  CHECK(run("v_fma_mix_f32", 0x42004000, three, one, 1, 1) == 0x41200000);  // its high half, 3
  CHECK(run("v_fma_mixlo_f16", two, three, one, 0, 0) == 0xAAAA4700);
  CHECK(run("v_fma_mixhi_f16", two, three, one, 0, 0) == 0x47005555);
}

TEST_CASE("simulator values: sums of products that gfx10.3 alone has", "[simulator][values]") {
  const auto run = [](const char* name, U a, U b, U c) {
    Bench bench({.generation = Generation::gfx10_3});
    bench.set_vgpr(2, a);
    bench.set_vgpr(4, b);
    bench.set_vgpr(6, c);
    std::vector<U> words = encode::vop3p("v_pk_add_f16", 8, v(2), v(4), v(6));
    words[0] = (words[0] & ~(0x7FU << 16U)) | encode::number(name, Generation::gfx10_3) << 16U;
    INFO(name);
    REQUIRE_FALSE(bench.run(words));
    return bench.vgpr(8, 5);
  };
  CHECK(run("v_dot2_i32_i16", 0xFFFE0003, 0x00070005, 10) == 11);                 // 3 · 5 - 2 · 7 + 10
  CHECK(run("v_dot2_u32_u16", 0xFFFF0003, 0x00020005, 1) == 131086);              // 3 · 5 + 65535 · 2 + 1
  CHECK(run("v_dot4_i32_i8", 0x01FF0280, 0x7F020304, 1000) == 619);               // -128 · 4 + 2 · 3 - 2 + 127 + 1000
  CHECK(run("v_dot8_i32_i4", 0x8F123457, 0x11111111, 0xFFFFFFEC) == 0xFFFFFFF9);  // 7+5+4+3+2+1-1-8 - 20
  Bench bench({.generation = Generation::gfx10_3});
  bench.set_vgpr(2, 0x01FF0280);
  bench.set_vgpr(4, 0x7F020304);
  bench.set_vgpr(8, 1000);
  REQUIRE_FALSE(
      bench.run({encode::number("v_dot4c_i32_i8", Generation::gfx10_3) << 25U | 8U << 17U | 4U << 9U | v(2)}));
  CHECK(bench.vgpr(8, 5) == 619);
}

TEST_CASE("simulator values: differences the other way round, with what they borrow", "[simulator][values]") {
  Bench bench;
  for (unsigned lane = 0; lane < 32; ++lane) {
    bench.vgpr(2, lane) = lane;
    bench.vgpr(4, lane) = 16;
  }
  bench.set_sgpr64(operand::vcc_lo, 0xFFFF0001);
  REQUIRE_FALSE(bench.run(encode::join(
      {encode::vop3sd("v_subrev_co_u32", 8, 20, v(2), v(4)), {encode::vop2("v_subrev_co_ci_u32", 9, v(2), v(4))}})));
  for (unsigned lane = 0; lane < 32; ++lane) {
    const U borrowed = lane == 0 || lane >= 16 ? 1 : 0;
    CHECK(bench.vgpr(8, lane) == 16 - lane);
    CHECK(bench.vgpr(9, lane) == 16 - lane - borrowed);
  }
  CHECK(bench.sgpr(20) == 0xFFFE0000);               // 17 and more are above 16
  CHECK(bench.sgpr(operand::vcc_lo) == 0xFFFF0000);  // and 16 with what is borrowed
  bench.sgpr(30) = 3;
  bench.sgpr(31) = 10;
  REQUIRE_FALSE(bench.run(encode::join({encode::vop3sd("v_subrev_co_u32", 10, 22, 30, 31),
                                        encode::vop3("v_cndmask_b32", 11, 30, 31, operand::vcc_lo)})));
  CHECK(bench.vgpr(10, 4) == 7);
  CHECK(bench.vgpr(11, 4) == 3);
  CHECK(bench.vgpr(11, 16) == 10);
}

TEST_CASE("simulator values: carries and overflows of products with sums of 64 bits", "[simulator][values]") {
  const Row rows[] = {{"v_mad_u64_u32", 0, 5, 7, 0},
                      {"v_mad_u64_u32", 0xFFFFFFFF, 0xFFFFFFFF, ~W{0}, 1},
                      {"v_mad_i64_i32", 0xFFFFFFFF, 1, W{1} << 63, 1},
                      {"v_mad_i64_i32", 1, 1, ~W{0} >> 1, 1},
                      {"v_mad_i64_i32", 0xFFFFFFFF, 1, 5, 0},
                      {"v_mad_i64_i32", 0xFFFFFFFF, 1, ~W{0}, 0},
                      {"v_mad_i64_i32", 3, 0xFFFFFFFE, 2, 0}};
  for (const Row& row : rows) {
    Bench bench;
    bench.set_vgpr64(2, 5, row.a);
    bench.set_vgpr64(4, 5, row.b);
    bench.set_vgpr64(6, 5, row.c);
    INFO(row.name << std::hex << " " << row.a << " " << row.b << " " << row.c);
    REQUIRE_FALSE(bench.run(encode::vop3sd(row.name, 8, 20, v(2), v(4), v(6))));
    CHECK(bench.sgpr(20) == row.expected << 5);
  }
}

TEST_CASE("simulator values: halves by a mask, and registers by M0", "[simulator][values]") {
  Bench bench;
  bench.set_vgpr(2, 0x11112222);
  bench.set_vgpr(4, 0x33334444);
  bench.set_vgpr(9, 0xAAAA5555);
  bench.set_sgpr64(20, 0x0000FFF0);
  REQUIRE_FALSE(bench.run(
      encode::join({encode::vop3("v_cndmask_b16", 8, v(2), v(4), 20), {encode::vop1("v_mov_b16", 9, v(2))}})));
  CHECK((bench.vgpr(8, 3) & 0xFFFF) == 0x2222);
  CHECK((bench.vgpr(8, 4) & 0xFFFF) == 0x4444);
  CHECK(bench.vgpr(9, 3) == 0xAAAA2222);

  const auto moved = [](const char* name, U m0) {
    Bench one_move;
    for (unsigned r = 0; r < 32; ++r) one_move.set_vgpr(r, 100 + r);
    one_move.sgpr(operand::m0) = m0;
    INFO(name);
    REQUIRE_FALSE(one_move.run({encode::vop1(name, 8, v(2))}));
    std::vector<U> changed;  // register, value
    for (unsigned r = 0; r < 32; ++r) {
      if (one_move.vgpr(r, 5) != 100 + r) changed.insert(changed.end(), {r, one_move.vgpr(r, 5)});
    }
    return changed;
  };
  CHECK(moved("v_movrelsd_b32", 3) == std::vector<U>{11, 105});
  CHECK(moved("v_movrelsd_2_b32", 2 | 4U << 16U) == std::vector<U>{12, 104});
  CHECK(moved("v_swaprel_b32", 2 | 4U << 16U) == std::vector<U>{4, 112, 12, 104});
}

}  // namespace kiln::simulator::test
