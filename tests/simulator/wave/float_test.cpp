// Floating-point instructions against plain C++: arithmetic, modifiers, NaN and denormal rules, conversions, division.
#include <immintrin.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include "tests/simulator/wave/bench.hpp"

namespace kiln::simulator::test {
namespace {

using encode::v;

std::uint32_t bits(float value) {
  std::uint32_t result;
  std::memcpy(&result, &value, sizeof(result));
  return result;
}
float number(std::uint32_t value) {
  float result;
  std::memcpy(&result, &value, sizeof(result));
  return result;
}
std::uint64_t bits64(double value) {
  std::uint64_t result;
  std::memcpy(&result, &value, sizeof(result));
  return result;
}
double number64(std::uint64_t value) {
  double result;
  std::memcpy(&result, &value, sizeof(result));
  return result;
}

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr std::uint32_t default_nan = 0xFFC00000U;

// Ordinary numbers, over many exponents.
float some_float(std::mt19937& generator) {
  const std::uint32_t word = generator();
  return number((word & 0x807FFFFFU) | (90U + word / 7 % 70U) << 23U);
}

struct Case {
  const char* name;
  std::function<float(float, float, float)> expected;
};

}  // namespace

TEST_CASE("simulator f32: arithmetic on random numbers", "[simulator][wave]") {
  const Case cases[] = {
      {"v_add_f32", [](float a, float b, float) { return a + b; }},
      {"v_sub_f32", [](float a, float b, float) { return a - b; }},
      {"v_subrev_f32", [](float a, float b, float) { return b - a; }},
      {"v_mul_f32", [](float a, float b, float) { return a * b; }},
      {"v_fma_f32", [](float a, float b, float c) { return std::fma(a, b, c); }},
      {"v_min_f32", [](float a, float b, float) { return std::fmin(a, b); }},
      {"v_max_f32", [](float a, float b, float) { return std::fmax(a, b); }},
      {"v_min3_f32", [](float a, float b, float c) { return std::fmin(std::fmin(a, b), c); }},
      {"v_max3_f32", [](float a, float b, float c) { return std::fmax(std::fmax(a, b), c); }},
      {"v_med3_f32",
       [](float a, float b, float c) { return std::fmax(std::fmin(a, b), std::fmin(std::fmax(a, b), c)); }},
      {"v_floor_f32", [](float a, float, float) { return std::floor(a); }},
      {"v_ceil_f32", [](float a, float, float) { return std::ceil(a); }},
      {"v_trunc_f32", [](float a, float, float) { return std::trunc(a); }},
      {"v_rndne_f32", [](float a, float, float) { return std::nearbyint(a); }},
      {"v_fract_f32", [](float a, float, float) { return std::fmin(a - std::floor(a), 0x1.fffffep-1F); }},
      {"v_sqrt_f32", [](float a, float, float) { return a < 0 ? number(default_nan) : std::sqrt(a); }},
      {"v_rcp_f32", [](float a, float, float) { return 1.0F / a; }},
  };
  std::mt19937 generator(1);
  for (const Case& c : cases) {
    const OpcodeInfo* opcode = nullptr;
    for (unsigned i = 1; i < static_cast<unsigned>(Opcode::count); ++i) {
      if (info(static_cast<Opcode>(i)).name == c.name) opcode = &info(static_cast<Opcode>(i));
    }
    REQUIRE(opcode != nullptr);
    for (const WaveSize wave : {WaveSize::wave32, WaveSize::wave64}) {
      for (unsigned abs = 0; abs < 8; abs += 3) {
        Bench bench({Generation::gfx11, wave, VectorChoice::best});
        for (unsigned lane = 0; lane < bench.wave.lanes(); ++lane) {
          for (unsigned s = 1; s <= 3; ++s) bench.vgpr(s, lane) = bits(some_float(generator));
        }
        unsigned sources = 0;
        for (const DataType type : opcode->src) sources += type != DataType::none ? 1 : 0;
        const unsigned present = (1U << sources) - 1, neg = (abs * 5 + 1) & present;
        const auto program = encode::vop3(c.name, 0, v(1), sources > 1 ? v(2) : 0, sources > 2 ? v(3) : 0,
                                          {.abs = abs & present, .neg = neg});
        REQUIRE_FALSE(bench.run(program));
        for (unsigned lane = 0; lane < bench.wave.lanes(); ++lane) {
          float in[3];
          for (unsigned s = 0; s < 3; ++s) {
            in[s] = number(bench.vgpr(s + 1, lane));
            if ((abs & present) >> s & 1U) in[s] = std::fabs(in[s]);
            if (neg >> s & 1U) in[s] = -in[s];
          }
          INFO(c.name << " lane " << lane << " of " << in[0] << " " << in[1] << " " << in[2]);
          CHECK(bench.vgpr(0, lane) == bits(c.expected(in[0], in[1], in[2])));
        }
      }
    }
  }
}

TEST_CASE("simulator f32: which NaN comes out, and signed zeros", "[simulator][wave]") {
  struct Row {
    const char* name;
    std::uint32_t a, b, c, expected;
  };
  constexpr std::uint32_t quiet = 0x7FC12345U, signalling = 0x7F812345U, other = 0xFFC54321U, minus_zero = 0x80000000U;
  const std::uint32_t inf = bits(infinity), one = bits(1.0F);
  const Row rows[] = {
      {"v_add_f32", quiet, one, 0, quiet},
      {"v_add_f32", one, signalling, 0, signalling | 0x400000U},
      {"v_add_f32", quiet, other, 0, quiet},
      {"v_mul_f32", other, quiet, 0, other},
      {"v_add_f32", inf, inf | minus_zero, 0, default_nan},
      {"v_mul_f32", inf, 0, 0, default_nan},
      {"v_fma_f32", inf, 0, quiet, quiet},
      {"v_fma_f32", one, quiet, other, quiet},
      {"v_fma_f32", other, quiet, one, other},
      {"v_min_f32", quiet, one, 0, one},
      {"v_min_f32", one, quiet, 0, one},
      {"v_max_f32", signalling, one, 0, signalling | 0x400000U},
      {"v_min_f32", minus_zero, 0, 0, minus_zero},
      {"v_min_f32", 0, minus_zero, 0, minus_zero},
      {"v_max_f32", minus_zero, 0, 0, 0},
      {"v_med3_f32", quiet, one, inf, one},
      {"v_sqrt_f32", one | minus_zero, 0, 0, default_nan},
      {"v_log_f32", one | minus_zero, 0, 0, default_nan},
      {"v_log_f32", 0, 0, 0, inf | minus_zero},
      {"v_rcp_f32", minus_zero, 0, 0, inf | minus_zero},
      {"v_rsq_f32", 0, 0, 0, inf},
      {"v_sin_f32", inf, 0, 0, default_nan},
      {"v_mul_dx9_zero_f32", 0, inf, 0, 0},
  };
  for (const Row& row : rows) {
    Bench bench;
    bench.set_vgpr(1, row.a);
    bench.set_vgpr(2, row.b);
    bench.set_vgpr(3, row.c);
    const bool one_source = std::string(row.name).find("v_s") == 0 || std::string(row.name).find("v_r") == 0 ||
                            std::string(row.name) == "v_log_f32";
    const bool three = std::string(row.name).find("fma") != std::string::npos ||
                       std::string(row.name).find("med3") != std::string::npos;
    REQUIRE_FALSE(bench.run(encode::vop3(row.name, 0, v(1), one_source ? 0 : v(2), three ? v(3) : 0)));
    INFO(row.name << " " << std::hex << row.a << " " << row.b << " " << row.c);
    CHECK(bench.vgpr(0, 17) == row.expected);
  }
}

TEST_CASE("simulator f32: denormals by mode, output modifiers, clamp", "[simulator][wave]") {
  constexpr std::uint32_t keep = 0xF0U | 3U << 8U, flush = 0xC0U | 1U << 8U, ieee_off = 1U << 8U;
  const float tiny = 1e-40F, small = 2e-38F;
  const auto after = [](std::uint32_t mode, const std::vector<std::uint32_t>& words, float a, float b) {
    Bench bench;
    bench.set_mode(mode);
    bench.set_vgpr(1, bits(a));
    bench.set_vgpr(2, bits(b));
    REQUIRE_FALSE(bench.run(words));
    return number(bench.vgpr(0, 5));
  };
  const auto add = encode::vop3("v_add_f32", 0, v(1), v(2));
  CHECK(after(keep, add, tiny, 0.0F) == tiny);
  CHECK(after(flush, add, tiny, 0.0F) == 0.0F);
  CHECK(after(keep, encode::vop3("v_mul_f32", 0, v(1), v(2)), small, 0.25F) == small * 0.25F);
  CHECK(after(flush, encode::vop3("v_mul_f32", 0, v(1), v(2)), small, 0.25F) == 0.0F);
  CHECK(after(flush, encode::vop3("v_max_f32", 0, v(1), v(2)), tiny, -1.0F) == 0.0F);
  CHECK(after(keep, encode::vop3("v_max_f32", 0, v(1), v(2)), tiny, -1.0F) == tiny);
  const auto equal_then_one = encode::join(
      {{encode::vopc("v_cmp_eq_f32", v(1), v(2))}, encode::vop3("v_cndmask_b32", 0, 128, 242, operand::vcc_lo)});
  CHECK(after(flush, equal_then_one, tiny, 0.0F) == 1.0F);
  CHECK(after(keep, equal_then_one, tiny, 0.0F) == 0.0F);

  CHECK(after(ieee_off, encode::vop3("v_add_f32", 0, v(1), v(2), 0, {.omod = 1}), 3.0F, 4.0F) == 14.0F);
  CHECK(after(ieee_off, encode::vop3("v_add_f32", 0, v(1), v(2), 0, {.omod = 2}), 3.0F, 4.0F) == 28.0F);
  CHECK(after(ieee_off, encode::vop3("v_add_f32", 0, v(1), v(2), 0, {.omod = 3}), 3.0F, 4.0F) == 3.5F);
  CHECK(after(keep, encode::vop3("v_add_f32", 0, v(1), v(2), 0, {.omod = 1}), 3.0F, 4.0F) == 7.0F);
  CHECK(after(keep, encode::vop3("v_add_f32", 0, v(1), v(2), 0, {.clamp = true}), 3.0F, 4.0F) == 1.0F);
  CHECK(after(keep, encode::vop3("v_add_f32", 0, v(1), v(2), 0, {.clamp = true}), -3.0F, 1.0F) == 0.0F);
  CHECK(after(keep, encode::vop3("v_add_f32", 0, v(1), v(2), 0, {.clamp = true}), 0.25F, 0.5F) == 0.75F);
  CHECK(after(keep, encode::vop3("v_add_f32", 0, v(1), v(2), 0, {.clamp = true}), infinity, -infinity) == 0.0F);

  constexpr std::uint32_t up = 0xF1U | 3U << 8U, down = 0xF2U | 3U << 8U, to_zero = 0xF3U | 3U << 8U;
  CHECK(after(up, add, 1.0F, 1e-10F) == std::nextafter(1.0F, 2.0F));
  CHECK(after(down, add, 1.0F, -1e-10F) == std::nextafter(1.0F, 0.0F));
  CHECK(after(to_zero, add, -1.0F, 1e-10F) == std::nextafter(-1.0F, 0.0F));
  CHECK(after(keep, add, 1.0F, 1e-10F) == 1.0F);
}

TEST_CASE("simulator: MODE is changed by instructions", "[simulator][wave]") {
  Bench bench;
  bench.set_vgpr(1, bits(1e-40F));
  const unsigned host = _mm_getcsr();
  // s_denorm_mode 12 flushes f32 and keeps the others; hwreg(MODE, 0, 8) then reads back.
  REQUIRE_FALSE(bench.run(encode::join({encode::vop3("v_add_f32", 2, v(1), 128),
                                        {encode::sopp("s_denorm_mode", 0xC)},
                                        encode::vop3("v_add_f32", 3, v(1), 128),
                                        {encode::sopk("s_getreg_b32", 4, 1 | 7 << 11)},
                                        {encode::sopp("s_round_mode", 1)},
                                        {encode::sopk("s_getreg_b32", 5, 1 | 7 << 11)}})));
  CHECK(bench.vgpr(2, 0) == bits(1e-40F));
  CHECK(bench.vgpr(3, 0) == 0);
  CHECK(bench.sgpr(4) == 0xC0);
  CHECK(bench.sgpr(5) == 0xC1);
  CHECK(_mm_getcsr() == host);
}

TEST_CASE("simulator: conversions between numbers", "[simulator][wave]") {
  const auto convert = [](const char* name, std::uint32_t in) {
    Bench bench;
    bench.set_vgpr(1, in);
    REQUIRE_FALSE(bench.run({encode::vop1(name, 0, v(1))}));
    return bench.vgpr(0, 9);
  };
  CHECK(convert("v_cvt_f32_i32", 0x80000001U) == bits(-2147483647.0F));
  CHECK(convert("v_cvt_f32_u32", 0xFFFFFFFFU) == bits(4294967296.0F));
  CHECK(convert("v_cvt_f32_u32", 0x80000081U) == bits(static_cast<float>(0x80000081U)));
  CHECK(convert("v_cvt_i32_f32", bits(-7.9F)) == static_cast<std::uint32_t>(-7));
  CHECK(convert("v_cvt_i32_f32", bits(3e9F)) == 0x7FFFFFFFU);
  CHECK(convert("v_cvt_i32_f32", bits(-infinity)) == 0x80000000U);
  CHECK(convert("v_cvt_i32_f32", default_nan) == 0);
  CHECK(convert("v_cvt_u32_f32", bits(-1.0F)) == 0);
  CHECK(convert("v_cvt_u32_f32", bits(3e9F)) == 3000000000U);
  CHECK(convert("v_cvt_u32_f32", bits(5e9F)) == 0xFFFFFFFFU);
  CHECK(convert("v_cvt_nearest_i32_f32", bits(2.5F)) == 3);
  CHECK(convert("v_cvt_floor_i32_f32", bits(-2.5F)) == static_cast<std::uint32_t>(-3));
  CHECK(convert("v_cvt_f32_ubyte2", 0x12AB3456U) == bits(171.0F));
  CHECK(convert("v_cvt_off_f32_i4", 0xF) == bits(-0.0625F));
  CHECK(convert("v_cvt_off_f32_i4", 7) == bits(0.4375F));
  CHECK(convert("v_frexp_exp_i32_f32", bits(12.0F)) == 4);
  CHECK(convert("v_frexp_mant_f32", bits(-12.0F)) == bits(-0.75F));
  CHECK(convert("v_frexp_exp_i32_f32", 1) == static_cast<std::uint32_t>(-148));
  CHECK(convert("v_frexp_mant_f32", 1) == bits(0.5F));
  CHECK(convert("v_frexp_exp_i32_f32", bits(infinity)) == 0);

  Bench bench;
  bench.set_vgpr64(2, 3, bits64(-1e10));
  bench.set_vgpr64(4, 3, bits64(1.0 + 0x1p-30));
  REQUIRE_FALSE(bench.run({encode::vop1("v_cvt_i32_f64", 0, v(2)), encode::vop1("v_cvt_u32_f64", 1, v(2)),
                           encode::vop1("v_cvt_f32_f64", 6, v(4)), encode::vop1("v_frexp_exp_i32_f64", 7, v(2))}));
  CHECK(bench.vgpr(0, 3) == 0x80000000U);
  CHECK(bench.vgpr(1, 3) == 0);
  CHECK(bench.vgpr(6, 3) == bits(1.0F));
  CHECK(bench.vgpr(7, 3) == 34);
}

TEST_CASE("simulator f64: arithmetic on random numbers", "[simulator][wave]") {
  std::mt19937_64 generator(2);
  Bench bench;
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned r = 2; r <= 6; r += 2) {
      const std::uint64_t word = generator();
      bench.set_vgpr64(r, lane, (word & 0x800FFFFFFFFFFFFFU) | (1000 + word % 50) << 52U);
    }
  }
  REQUIRE_FALSE(bench.run(
      encode::join({encode::vop3("v_add_f64", 10, v(2), v(4), 0, {.neg = 2}),
                    encode::vop3("v_mul_f64", 12, v(2), v(4), 0, {.abs = 1}),
                    encode::vop3("v_fma_f64", 14, v(2), v(4), v(6)), encode::vop3("v_min_f64", 16, v(2), v(4)),
                    encode::vop3("v_ldexp_f64", 18, v(2), 193), encode::vop3("v_add_f64", 20, v(2), 242)})));
  for (unsigned lane = 0; lane < 32; ++lane) {
    const double a = number64(bench.vgpr64(2, lane)), b = number64(bench.vgpr64(4, lane)),
                 c = number64(bench.vgpr64(6, lane));
    CHECK(bench.vgpr64(10, lane) == bits64(a - b));
    CHECK(bench.vgpr64(12, lane) == bits64(std::fabs(a) * b));
    CHECK(bench.vgpr64(14, lane) == bits64(std::fma(a, b, c)));
    CHECK(bench.vgpr64(16, lane) == bits64(std::fmin(a, b)));
    CHECK(bench.vgpr64(18, lane) == bits64(a / 2));
    CHECK(bench.vgpr64(20, lane) == bits64(a + 1.0));
  }
}

// The sequence that compilers emit for an exact quotient.
TEST_CASE("simulator: division in steps gives the rounded quotient", "[simulator][wave]") {
  std::mt19937 generator(3);
  Bench bench;
  for (unsigned round = 0; round < 40; ++round) {
    for (unsigned lane = 0; lane < 32; ++lane) {
      bench.vgpr(1, lane) = generator();  // numerator
      bench.vgpr(2, lane) = generator();
      if (round == 0) bench.vgpr(1, lane) = lane % 2 != 0 ? bits(0x1p-140F) : bits(3e38F);
      if (round == 1) bench.vgpr(2, lane) = lane % 2 != 0 ? bits(0x1p-140F) : bits(3e38F);
      if (round == 2) bench.vgpr(2, lane) = lane % 2 != 0 ? 0 : bits(infinity);
    }
    // v3: scaled denominator, v4: scaled numerator, v5: reciprocal and quotient
    REQUIRE_FALSE(bench.run(encode::join({encode::vop3sd("v_div_scale_f32", 3, operand::null, v(2), v(2), v(1)),
                                          encode::vop3sd("v_div_scale_f32", 4, operand::vcc_lo, v(1), v(2), v(1)),
                                          {encode::vop1("v_rcp_f32", 5, v(3))},
                                          encode::vop3("v_fma_f32", 6, v(3), v(5), 242, {.neg = 1}),
                                          encode::vop3("v_fma_f32", 5, v(6), v(5), v(5)),
                                          encode::vop3("v_mul_f32", 7, v(4), v(5)),
                                          encode::vop3("v_fma_f32", 8, v(3), v(7), v(4), {.neg = 1}),
                                          encode::vop3("v_fma_f32", 7, v(8), v(5), v(7)),
                                          encode::vop3("v_fma_f32", 8, v(3), v(7), v(4), {.neg = 1}),
                                          encode::vop3("v_div_fmas_f32", 7, v(8), v(5), v(7)),
                                          encode::vop3("v_div_fixup_f32", 0, v(7), v(2), v(1))})));
    for (unsigned lane = 0; lane < 32; ++lane) {
      const float a = number(bench.vgpr(1, lane)), b = number(bench.vgpr(2, lane)), quotient = a / b;
      INFO("round " << round << " lane " << lane << ": " << a << " / " << b);
      if (std::isnan(quotient)) {
        CHECK(std::isnan(number(bench.vgpr(0, lane))));
      } else if (std::fabs(quotient) < std::numeric_limits<float>::min()) {
        // A denormal quotient is rounded twice.
        CHECK(std::fabs(number(bench.vgpr(0, lane)) - quotient) <= 0x1p-149F);
      } else {
        CHECK(bench.vgpr(0, lane) == bits(quotient));
      }
    }
  }
}

TEST_CASE("simulator f64: division in steps gives the rounded quotient", "[simulator][wave]") {
  constexpr double special[] = {0.0,
                                -0.0,
                                0x1p-1074,
                                -0x1p-1050,
                                0x1p-1022,
                                0x1.8p-1000,
                                1.0,
                                -3.0,
                                0x1p1000,
                                0x1.fffffffffffffp1023,
                                std::numeric_limits<double>::infinity(),
                                std::numeric_limits<double>::quiet_NaN()};
  constexpr unsigned count = sizeof special / sizeof special[0];
  std::mt19937_64 generator(5);
  Bench bench;
  for (unsigned round = 0; round < 40; ++round) {
    for (unsigned lane = 0; lane < 32; ++lane) {
      const unsigned pair = round * 32 + lane;
      bench.set_vgpr64(2, lane, pair < count * count ? bits64(special[pair / count]) : generator());
      bench.set_vgpr64(4, lane, pair < count * count ? bits64(special[pair % count]) : generator());
    }
    // v6: scaled denominator, v8: scaled numerator, v10: reciprocal, v14: quotient
    REQUIRE_FALSE(bench.run(encode::join({encode::vop3sd("v_div_scale_f64", 6, operand::null, v(4), v(4), v(2)),
                                          encode::vop3sd("v_div_scale_f64", 8, operand::vcc_lo, v(2), v(4), v(2)),
                                          {encode::vop1("v_rcp_f64", 10, v(6))},
                                          encode::vop3("v_fma_f64", 12, v(6), v(10), 242, {.neg = 1}),
                                          encode::vop3("v_fma_f64", 10, v(10), v(12), v(10)),
                                          encode::vop3("v_fma_f64", 12, v(6), v(10), 242, {.neg = 1}),
                                          encode::vop3("v_fma_f64", 10, v(10), v(12), v(10)),
                                          encode::vop3("v_mul_f64", 14, v(8), v(10)),
                                          encode::vop3("v_fma_f64", 16, v(6), v(14), v(8), {.neg = 1}),
                                          encode::vop3("v_div_fmas_f64", 14, v(16), v(10), v(14)),
                                          encode::vop3("v_div_fixup_f64", 18, v(14), v(4), v(2))})));
    for (unsigned lane = 0; lane < 32; ++lane) {
      const double a = number64(bench.vgpr64(2, lane)), b = number64(bench.vgpr64(4, lane)), quotient = a / b;
      const std::uint64_t got = bench.vgpr64(18, lane);
      INFO("round " << round << " lane " << lane << ": " << a << " / " << b);
      if (std::isnan(quotient)) {
        CHECK(std::isnan(number64(got)));
      } else if (std::fabs(quotient) < std::numeric_limits<double>::min()) {
        CHECK(std::fabs(number64(got) - quotient) <= 0x1p-1074);
      } else {
        CHECK(got == bits64(quotient));
      }
    }
  }
}

TEST_CASE("simulator: a quotient beyond its type is rounded as MODE says", "[simulator][wave]") {
  const struct {
    unsigned rounding;  // nearest, up, down, to zero
    std::uint32_t large, large_negative, small, small_negative;
  } rows[] = {{0, 0x7F800000, 0xFF800000, 0, 0x80000000},
              {1, 0x7F800000, 0xFF7FFFFF, 1, 0x80000000},
              {2, 0x7F7FFFFF, 0xFF800000, 0, 0x80000001},
              {3, 0x7F7FFFFF, 0xFF7FFFFF, 0, 0x80000000}};
  for (const auto& row : rows) {
    Bench bench;
    bench.set_mode(0xF0U | row.rounding);
    bench.set_vgpr(1, 0x7FC00000);  // what the steps before give
    for (unsigned lane = 0; lane < 32; ++lane) {
      const bool overflows = lane % 2 == 0;
      bench.vgpr(2, lane) = bits(overflows ? 0x1p-100F : 0x1p100F);
      bench.vgpr(3, lane) = bits((overflows ? 0x1p100F : 0x1p-100F) * (lane % 4 < 2 ? 1.0F : -1.0F));
    }
    REQUIRE_FALSE(bench.run(encode::vop3("v_div_fixup_f32", 4, v(1), v(2), v(3))));
    INFO("rounding " << row.rounding);
    CHECK(bench.vgpr(4, 0) == row.large);
    CHECK(bench.vgpr(4, 1) == row.small);
    CHECK(bench.vgpr(4, 2) == row.large_negative);
    CHECK(bench.vgpr(4, 3) == row.small_negative);
  }
}

TEST_CASE("simulator VALU: parts of 2/pi for the reduction of large angles", "[simulator][wave]") {
  struct Case {
    double number;
    std::uint32_t part;
    double expected;
  };
  // From 2/pi to 1,201 bits, computed with integers.
  const Case cases[] = {{1.0, 0, 0x1.45f306dc9c882p-1},
                        {-1.0, 0, 0x1.45f306dc9c882p-1},
                        {1.0, 1, 0x1.4a7f09d5f47d4p-54},
                        {0x1p+54, 0, 0x1.45f306dc9c882p-1},
                        {0x1p+77, 0, 0x1.6e4e441529fc2p-24},
                        {0x1p+477, 2, 0x1.c09ad17df904ep-530},
                        {0x1p+1023, 0, 0x1.3dd63f5f2f8bcp-843},
                        {0x1p+945, 5, 0x0.0180cc11bf1ecp-1022},
                        {0x1p+944, 6, 0.0},
                        {1.0, 31, 0.0},
                        {1.0, 33, 0x1.4a7f09d5f47d4p-54},  // five bits of it count
                        {0.0, 0, 0x1.45f306dc9c882p-1}};
  for (const Case& each : cases) {
    INFO(each.number << " part " << each.part);
    Bench bench;
    for (unsigned lane = 0; lane < 32; ++lane) {
      bench.set_vgpr64(2, lane, bits64(each.number));
      bench.vgpr(4, lane) = each.part;
    }
    REQUIRE_FALSE(bench.run(encode::vop3("v_trig_preop_f64", 6, v(2), v(4))));
    CHECK(bench.vgpr64(6, 0) == bits64(each.expected));
    CHECK(bench.vgpr64(6, 31) == bits64(each.expected));
  }
  // The parts one after the other are 2/pi: 53 bits each, of which the first differs from it by less than the last bit.
  Bench bench;
  long double sum = 0;
  for (unsigned part = 0; part < 3; ++part) {
    for (unsigned lane = 0; lane < 32; ++lane) bench.set_vgpr64(2, lane, bits64(3.0));
    REQUIRE_FALSE(bench.run(encode::vop3("v_trig_preop_f64", 6, v(2), 128 + part)));
    double value;
    const std::uint64_t word = bench.vgpr64(6, 7);
    std::memcpy(&value, &word, sizeof value);
    sum += static_cast<long double>(value);
  }
  CHECK(std::fabs(sum - 2 / 3.14159265358979323846264338327950288L) < 0x1p-63L);
}

}  // namespace kiln::simulator::test
