// Half-precision instructions: conversions, selects, packed sums, rounding.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "tests/simulator/wave/bench.hpp"

namespace kiln::simulator::test {
namespace {

using encode::v;
using U = std::uint32_t;

constexpr float infinity = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("simulator f16: every value widens exactly, and narrows back to itself", "[simulator][wave]") {
  for (const VectorChoice choice : {VectorChoice::best, VectorChoice::no_avx512, VectorChoice::portable}) {
    Bench bench({Generation::gfx11, WaveSize::wave64, choice});
    unsigned wrong = 0;
    for (unsigned first = 0; first < 0x10000; first += 64) {
      for (unsigned lane = 0; lane < 64; ++lane) bench.vgpr(1, lane) = first + lane;
      REQUIRE_FALSE(bench.run({encode::vop1("v_cvt_f32_f16", 2, v(1)), encode::vop1("v_cvt_f16_f32", 3, v(2))}));
      for (unsigned lane = 0; lane < 64; ++lane) {
        const unsigned half = first + lane, exponent = half >> 10U & 31U, fraction = half & 0x3FFU;
        const float sign = (half & 0x8000U) != 0 ? -1.0F : 1.0F;
        float expected = exponent == 0
                             ? std::ldexp(static_cast<float>(fraction), -24)
                             : std::ldexp(static_cast<float>(fraction | 0x400U), static_cast<int>(exponent) - 25);
        if (exponent == 31) expected = fraction == 0 ? infinity : std::numeric_limits<float>::quiet_NaN();
        if (std::isnan(expected)) {
          wrong += bench.vgpr(2, lane) != ((half & 0x8000U) << 16U | 0x7FC00000U | fraction << 13U) ? 1 : 0;
          wrong += (bench.vgpr(3, lane) & 0xFFFFU) != (half | 0x200U) ? 1 : 0;
        } else {
          wrong += bench.vgpr(2, lane) != std::bit_cast<U>(sign * expected) || (bench.vgpr(3, lane) & 0xFFFFU) != half
                       ? 1
                       : 0;
        }
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("simulator f16: selects and classes see denormals that MODE flushes", "[simulator][wave]") {
  constexpr unsigned flushes16 = 0x330, positive_denormal = 1U << 7U, positive_zero = 1U << 6U;
  for (const VectorChoice choice : {VectorChoice::best, VectorChoice::no_avx512, VectorChoice::portable}) {
    Bench bench({Generation::gfx11, WaveSize::wave32, choice});
    bench.set_mode(flushes16);
    bench.set_vgpr(1, 0x0001);
    bench.set_vgpr(2, 0x8002);
    bench.set_vgpr(3, positive_denormal);
    bench.set_vgpr(4, positive_zero);
    bench.sgpr(20) = 0xFFFF0000U;
    REQUIRE_FALSE(bench.run(
        encode::join({encode::vop3("v_cndmask_b16", 8, v(1), v(2), 20), encode::vop3("v_cmp_class_f16", 22, v(1), v(3)),
                      encode::vop3("v_cmp_class_f16", 23, v(1), v(4))})));
    CHECK((bench.vgpr(8, 0) & 0xFFFFU) == 0x0001);
    CHECK((bench.vgpr(8, 16) & 0xFFFFU) == 0x8002);
    CHECK(bench.sgpr(22) == 0xFFFFFFFFU);
    CHECK(bench.sgpr(23) == 0);
  }
}

TEST_CASE("simulator f16: packed sums into their own register follow MODE", "[simulator][wave]") {
  constexpr unsigned keeps = 0x3F0, flushes16 = 0x330, saturates = keeps | 1U << mode_bit::fp16_ovfl;
  const auto run = [](std::uint32_t mode, std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    Bench bench;
    bench.set_mode(mode);
    bench.set_vgpr(1, a);
    bench.set_vgpr(2, b);
    bench.set_vgpr(3, c);
    REQUIRE_FALSE(bench.run({encode::vop2("v_pk_fmac_f16", 3, v(1), 2)}));
    return bench.vgpr(3, 5);
  };
  // 2 · 3 + 1 in the low half, 65504 · 2 in the high one.
  CHECK(run(keeps, 0x7BFF4000, 0x40004200, 0x00003C00) == 0x7C004700);
  CHECK(run(saturates, 0x7BFF4000, 0x40004200, 0x00003C00) == 0x7BFF4700);
  // A denormal factor, and a denormal addend.
  CHECK(run(keeps, 0x00014000, 0x4000C000, 0x00010001) == 0x0003C400);
  CHECK(run(flushes16, 0x00014000, 0x40000000, 0x00010001) == 0);
  // The quiet form of the first source NaN, with its sign.
  CHECK(run(keeps, 0xFC013C00, 0x3C003C00, 0x7E020000) == 0xFE013C00);
}

TEST_CASE("simulator f16: results are rounded once", "[simulator][wave]") {
  // The nearest half by search among neighbours, ties to even: nothing of the code under test.
  const auto value_of = [](unsigned half) {
    const unsigned exponent = half >> 10U & 31U, fraction = half & 0x3FFU;
    return exponent == 0 ? std::ldexp(static_cast<long double>(fraction), -24)
                         : std::ldexp(static_cast<long double>(fraction | 0x400U), static_cast<int>(exponent) - 25);
  };
  const auto nearest = [&](long double exact) {
    const long double size = exact < 0 ? -exact : exact;
    unsigned low = 0, high = 0x7C00U;  // the value of 0x7C00 is the power of two after the largest half
    while (high - low > 1) {
      const unsigned middle = (low + high) / 2;
      (value_of(middle) <= size ? low : high) = middle;
    }
    const long double below = size - value_of(low), above = value_of(high) - size;
    const unsigned chosen = below < above || (below == above && low % 2 == 0) ? low : high;
    return chosen | (std::signbit(exact) ? 0x8000U : 0U);
  };
  std::mt19937 generator(4);
  Bench bench;
  unsigned wrong = 0;
  for (unsigned round = 0; round < 100; ++round) {
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (unsigned r = 1; r <= 3; ++r)
        bench.vgpr(r, lane) = (generator() & 0x83FFU) | generator() % 26 << 10U | 0xABCD0000U;
    }
    bench.set_vgpr(4, 0x11110000U);
    bench.set_vgpr(5, 0x2222U);
    REQUIRE_FALSE(bench.run(encode::join({encode::vop3("v_fma_f16", 4, v(1), v(2), v(3)),
                                          encode::vop3("v_mul_f16", 5, v(1), v(2), 0, {.op_sel = 8}),
                                          encode::vop3("v_add_f16", 6, v(1), v(3))})));
    for (unsigned lane = 0; lane < 32; ++lane) {
      const auto operand_value = [&](unsigned r) {
        const unsigned half = bench.vgpr(r, lane) & 0xFFFFU;
        return (half & 0x8000U) != 0 ? -value_of(half & 0x7FFFU) : value_of(half);
      };
      const long double a = operand_value(1), b = operand_value(2), c = operand_value(3);
      wrong += bench.vgpr(4, lane) != (0x11110000U | nearest(a * b + c)) ? 1 : 0;
      wrong += bench.vgpr(5, lane) != (0x2222U | nearest(a * b) << 16U) ? 1 : 0;
      wrong += (bench.vgpr(6, lane) & 0xFFFFU) != nearest(a + c) ? 1 : 0;
    }
  }
  CHECK(wrong == 0);
}

}  // namespace kiln::simulator::test
