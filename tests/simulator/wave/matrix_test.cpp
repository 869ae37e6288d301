// Sums of matrices (WMMA) against plain C++: every type, both wave sizes, modifiers and constants.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "tests/simulator/wave/bench.hpp"

namespace kiln::simulator::test {
namespace {

using encode::v;
using U = std::uint32_t;

constexpr unsigned side = 16, first_a = 0, first_b = 8, first_c = 16, result = 32;

// Exact for the small integers of these tests.
U half_of(float value) {
  if (value == 0) return std::signbit(value) ? 0x8000U : 0U;
  int exponent = 0;
  const float fraction = std::frexp(std::fabs(value), &exponent);  // 0.5 to 1
  return (value < 0 ? 0x8000U : 0U) | static_cast<U>(exponent + 14) << 10U | (static_cast<U>(fraction * 2048) & 0x3FFU);
}
U bfloat_of(float value) {
  U bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits >> 16U;
}
U single_of(float value) {
  U bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

struct Matrices {
  int a[side][side], b[side][side], c[side][side];  // b by columns: b[j][k] is in row k
  explicit Matrices(int least, int most, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_int_distribution<int> factor(least, most), addend(-100, 100);
    for (unsigned i = 0; i < side; ++i) {
      for (unsigned k = 0; k < side; ++k) a[i][k] = factor(random), b[i][k] = factor(random), c[i][k] = addend(random);
    }
  }
  int sum(unsigned i, unsigned j) const {
    int total = c[i][j];
    for (unsigned k = 0; k < side; ++k) total += a[i][k] * b[j][k];
    return total;
  }
};

U& element(Bench& bench, unsigned first, unsigned row, unsigned column) {
  const unsigned rows = bench.wave.lanes() / side;
  return bench.vgpr(first + row / rows, row % rows * side + column);
}

void set_factors(Bench& bench, unsigned first, const int (&values)[side][side], unsigned bits,
                 const std::function<U(int)>& encoded) {
  for (unsigned lane = 0; lane < bench.wave.lanes(); ++lane) {
    for (unsigned at = 0; at < side * bits / 32; ++at) {
      U word = 0;
      for (unsigned k = 0; k < 32 / bits; ++k) {
        word |= (encoded(values[lane % side][at * 32 / bits + k]) & ((1U << bits) - 1U)) << k * bits;
      }
      bench.vgpr(first + at, lane) = word;
    }
  }
}

constexpr WaveSize sizes[] = {WaveSize::wave32, WaveSize::wave64};

}  // namespace

TEST_CASE("simulator WMMA: sums of f32 from factors of 16 bits", "[simulator][wave]") {
  for (const WaveSize size : sizes) {
    for (const bool bfloat : {false, true}) {
      const Matrices m(-20, 20, bfloat ? 1 : 2);
      Bench bench({.wave = size});
      const auto encoded = [&](int x) {
        return bfloat ? bfloat_of(static_cast<float>(x)) : half_of(static_cast<float>(x));
      };
      set_factors(bench, first_a, m.a, 16, encoded);
      set_factors(bench, first_b, m.b, 16, encoded);
      for (unsigned i = 0; i < side; ++i) {
        for (unsigned j = 0; j < side; ++j) element(bench, first_c, i, j) = single_of(static_cast<float>(m.c[i][j]));
      }
      const char* name = bfloat ? "v_wmma_f32_16x16x16_bf16" : "v_wmma_f32_16x16x16_f16";
      REQUIRE_FALSE(bench.run(encode::join(
          {encode::vop3p(name, result, v(first_a), v(first_b), v(first_c)),
           encode::vop3p(name, result + 8, v(first_a), v(first_b), v(first_c), 0, 7, 5, 4),  // -A even, -|C|
           encode::vop3p(name, result + 16, v(first_a), v(first_b), 242, 0, 7, 2, 2)})));    // -B, C of 1.0
      for (unsigned i = 0; i < side; ++i) {
        for (unsigned j = 0; j < side; ++j) {
          int negated = -std::abs(m.c[i][j]);
          for (unsigned k = 0; k < side; ++k) negated += (k % 2 == 0 ? -1 : 1) * m.a[i][k] * m.b[j][k];
          INFO(name << " " << i << " " << j);
          CHECK(element(bench, result, i, j) == single_of(static_cast<float>(m.sum(i, j))));
          CHECK(element(bench, result + 8, i, j) == single_of(static_cast<float>(negated)));
          CHECK(element(bench, result + 16, i, j) == single_of(static_cast<float>(1 - (m.sum(i, j) - m.c[i][j]))));
        }
      }
      // The result may lie on a factor or on C: all is read before.
      REQUIRE_FALSE(bench.run(encode::vop3p(name, first_a, v(first_a), v(first_b), v(first_c))));
      CHECK(element(bench, first_a, 3, 5) == single_of(static_cast<float>(m.sum(3, 5))));
    }
  }
}

TEST_CASE("simulator WMMA: sums of 16 bits, in either half of their registers", "[simulator][wave]") {
  for (const WaveSize size : sizes) {
    for (const bool bfloat : {false, true}) {
      for (const bool high : {false, true}) {
        const Matrices m(bfloat ? -1 : -5, bfloat ? 1 : 5, 3);
        Bench bench({.wave = size});
        const auto encoded = [&](int x) {
          return bfloat ? bfloat_of(static_cast<float>(x)) : half_of(static_cast<float>(x));
        };
        set_factors(bench, first_a, m.a, 16, encoded);
        set_factors(bench, first_b, m.b, 16, encoded);
        for (unsigned i = 0; i < side; ++i) {
          for (unsigned j = 0; j < side; ++j) {
            element(bench, first_c, i, j) = (high ? 0x1234U : 0x12340000U) | encoded(m.c[i][j]) << (high ? 16U : 0U);
            element(bench, result, i, j) = 0x5678ABCD;
          }
        }
        const char* name = bfloat ? "v_wmma_bf16_16x16x16_bf16" : "v_wmma_f16_16x16x16_f16";
        REQUIRE_FALSE(bench.run(encode::vop3p(name, result, v(first_a), v(first_b), v(first_c), high ? 4 : 0)));
        for (unsigned i = 0; i < side; ++i) {
          for (unsigned j = 0; j < side; ++j) {
            const U expected = encoded(m.sum(i, j));
            INFO(name << (high ? " high " : " low ") << i << " " << j);
            CHECK(element(bench, result, i, j) == (high ? expected << 16U | 0xABCDU : 0x56780000U | expected));
          }
        }
        REQUIRE_FALSE(bench.run(encode::vop3p(name, result, v(first_a), v(first_b), 244, high ? 4 : 0)));  // C of 2.0
        CHECK((element(bench, result, 1, 2) >> (high ? 16U : 0U) & 0xFFFFU) == encoded(m.sum(1, 2) - m.c[1][2] + 2));
      }
    }
  }
}

TEST_CASE("simulator WMMA: sums of integers, signed or not, clamped or not", "[simulator][wave]") {
  for (const WaveSize size : sizes) {
    for (const unsigned bits : {8U, 4U}) {
      for (unsigned sign = 0; sign < 4; ++sign) {
        const Matrices m(0, (1 << bits) - 1, 4 + sign);
        Bench bench({.wave = size});
        const auto encoded = [](int x) { return static_cast<U>(x); };
        set_factors(bench, first_a, m.a, bits, encoded);
        set_factors(bench, first_b, m.b, bits, encoded);
        for (unsigned i = 0; i < side; ++i) {
          for (unsigned j = 0; j < side; ++j) element(bench, first_c, i, j) = static_cast<U>(m.c[i][j]);
        }
        element(bench, first_c, 0, 0) = 0x7FFFFFFF;
        const char* name = bits == 8 ? "v_wmma_i32_16x16x16_iu8" : "v_wmma_i32_16x16x16_iu4";
        REQUIRE_FALSE(bench.run(
            encode::join({encode::vop3p(name, result, v(first_a), v(first_b), v(first_c), 0, 7, sign),
                          encode::vop3p(name, result + 8, v(first_a), v(first_b), v(first_c), 0, 7, sign, 0, true),
                          encode::vop3p(name, result + 16, v(first_a), v(first_b), 128 + 9, 0, 7, sign)})));
        const auto number = [&](int x, bool is_signed) {
          return is_signed && x >= 1 << (bits - 1) ? x - (1 << bits) : x;
        };
        for (unsigned i = 0; i < side; ++i) {
          for (unsigned j = 0; j < side; ++j) {
            std::int64_t products = 0;
            for (unsigned k = 0; k < side; ++k) {
              products += number(m.a[i][k], (sign & 1U) != 0) * number(m.b[j][k], (sign & 2U) != 0);
            }
            const std::int64_t sum = products + static_cast<std::int32_t>(element(bench, first_c, i, j));
            INFO(name << " signs " << sign << ", " << i << " " << j);
            CHECK(element(bench, result, i, j) == static_cast<U>(sum));
            CHECK(element(bench, result + 8, i, j) == static_cast<U>(std::min<std::int64_t>(sum, 0x7FFFFFFF)));
            CHECK(element(bench, result + 16, i, j) == static_cast<U>(products + 9));
          }
        }
      }
    }
  }
}

TEST_CASE("simulator WMMA: all lanes must be active", "[simulator][wave]") {
  for (const WaveSize size : sizes) {
    Bench bench({.wave = size});
    bench.set_exec(size == WaveSize::wave32 ? 0x7FFF'FFFFU : 0xFFFF'FFFFU);
    const auto fault = bench.run(encode::vop3p("v_wmma_i32_16x16x16_iu8", result, v(0), v(8), v(16)));
    REQUIRE(fault);
    CHECK(fault->kind == FaultKind::bad_state);
    CHECK(fault->reason.find("all lanes must be active") != std::string::npos);
  }
}

}  // namespace kiln::simulator::test
