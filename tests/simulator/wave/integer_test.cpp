// Integer, bit and packed instructions against plain C++.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>

#include "tests/simulator/wave/bench.hpp"

namespace kiln::simulator::test {
namespace {

using encode::v;
using U = std::uint32_t;
using I = std::int32_t;
using W = std::uint64_t;
using L = std::int64_t;

struct Case {
  const char* name;
  unsigned sources;
  std::function<U(U, U, U)> expected;
};

U byte_of(U x, unsigned i) { return x >> 8 * i & 0xFF; }
U gap(U a, U b) { return a > b ? a - b : b - a; }

}  // namespace

TEST_CASE("simulator: 32-bit integer instructions on random numbers", "[simulator][wave]") {
  const Case cases[] = {
      {"v_add_nc_u32", 2, [](U a, U b, U) { return a + b; }},
      {"v_sub_nc_u32", 2, [](U a, U b, U) { return a - b; }},
      {"v_subrev_nc_u32", 2, [](U a, U b, U) { return b - a; }},
      {"v_mul_lo_u32", 2, [](U a, U b, U) { return a * b; }},
      {"v_mul_hi_u32", 2, [](U a, U b, U) { return static_cast<U>(W{a} * b >> 32); }},
      {"v_mul_hi_i32", 2, [](U a, U b, U) { return static_cast<U>(L{static_cast<I>(a)} * static_cast<I>(b) >> 32); }},
      {"v_mul_u32_u24", 2, [](U a, U b, U) { return static_cast<U>(W{a & 0xFFFFFF} * (b & 0xFFFFFF)); }},
      {"v_mul_hi_u32_u24", 2, [](U a, U b, U) { return static_cast<U>(W{a & 0xFFFFFF} * (b & 0xFFFFFF) >> 32); }},
      {"v_mul_i32_i24", 2,
       [](U a, U b, U) { return static_cast<U>((L{static_cast<I>(a << 8)} >> 8) * (static_cast<I>(b << 8) >> 8)); }},
      {"v_mad_u32_u24", 3, [](U a, U b, U c) { return static_cast<U>(W{a & 0xFFFFFF} * (b & 0xFFFFFF) + c); }},
      {"v_min_i32", 2, [](U a, U b, U) { return static_cast<U>(std::min(static_cast<I>(a), static_cast<I>(b))); }},
      {"v_max_u32", 2, [](U a, U b, U) { return std::max(a, b); }},
      {"v_med3_i32", 3,
       [](U a, U b, U c) {
         I s[] = {static_cast<I>(a), static_cast<I>(b), static_cast<I>(c)};
         std::sort(s, s + 3);
         return static_cast<U>(s[1]);
       }},
      {"v_lshlrev_b32", 2, [](U a, U b, U) { return b << (a % 32); }},
      {"v_lshrrev_b32", 2, [](U a, U b, U) { return b >> (a % 32); }},
      {"v_ashrrev_i32", 2, [](U a, U b, U) { return static_cast<U>(static_cast<I>(b) >> (a % 32)); }},
      {"v_and_b32", 2, [](U a, U b, U) { return a & b; }},
      {"v_xnor_b32", 2, [](U a, U b, U) { return ~(a ^ b); }},
      {"v_bfe_u32", 3, [](U a, U b, U c) { return c % 32 == 0 ? 0 : a >> b % 32 & ~0U >> (32 - c % 32); }},
      {"v_bfi_b32", 3, [](U a, U b, U c) { return (a & b) | (~a & c); }},
      {"v_bfm_b32", 2, [](U a, U b, U) { return ((1U << a % 32) - 1) << b % 32; }},
      {"v_alignbit_b32", 3, [](U a, U b, U c) { return static_cast<U>((W{a} << 32 | b) >> c % 32); }},
      {"v_alignbyte_b32", 3, [](U a, U b, U c) { return static_cast<U>((W{a} << 32 | b) >> 8 * (c % 4)); }},
      {"v_lshl_add_u32", 3, [](U a, U b, U c) { return (a << b % 32) + c; }},
      {"v_add_lshl_u32", 3, [](U a, U b, U c) { return (a + b) << c % 32; }},
      {"v_add3_u32", 3, [](U a, U b, U c) { return a + b + c; }},
      {"v_lshl_or_b32", 3, [](U a, U b, U c) { return a << b % 32 | c; }},
      {"v_and_or_b32", 3, [](U a, U b, U c) { return (a & b) | c; }},
      {"v_or3_b32", 3, [](U a, U b, U c) { return a | b | c; }},
      {"v_xor3_b32", 3, [](U a, U b, U c) { return a ^ b ^ c; }},
      {"v_xad_u32", 3, [](U a, U b, U c) { return (a ^ b) + c; }},
      {"v_bcnt_u32_b32", 2, [](U a, U b, U) { return static_cast<U>(__builtin_popcount(a)) + b; }},
      {"v_not_b32", 1, [](U a, U, U) { return ~a; }},
      {"v_clz_i32_u32", 1, [](U a, U, U) { return a == 0 ? ~0U : static_cast<U>(__builtin_clz(a)); }},
      {"v_ctz_i32_b32", 1, [](U a, U, U) { return a == 0 ? ~0U : static_cast<U>(__builtin_ctz(a)); }},
      {"v_bfrev_b32", 1,
       [](U a, U, U) {
         U r = 0;
         for (unsigned i = 0; i < 32; ++i) r |= (a >> i & 1) << (31 - i);
         return r;
       }},
      {"v_sad_u8", 3,
       [](U a, U b, U c) {
         for (unsigned i = 0; i < 4; ++i) c += gap(byte_of(a, i), byte_of(b, i));
         return c;
       }},
      {"v_sad_u32", 3, [](U a, U b, U c) { return gap(a, b) + c; }},
      {"v_perm_b32", 3,
       [](U a, U b, U c) {
         U r = 0;
         for (unsigned i = 0; i < 4; ++i) {
           const U s = byte_of(c, i);
           U value = s < 4 ? byte_of(b, s) : s < 8 ? byte_of(a, s - 4) : s == 12 ? 0 : 0xFF;
           if (s >= 8 && s < 12) value = (byte_of(s < 10 ? b : a, s % 2 == 0 ? 1 : 3) & 0x80) != 0 ? 0xFF : 0;
           r |= value << 8 * i;
         }
         return r;
       }},
      {"v_max_i32", 2, [](U a, U b, U) { return static_cast<U>(std::max(static_cast<I>(a), static_cast<I>(b))); }},
      {"v_min_u32", 2, [](U a, U b, U) { return std::min(a, b); }},
      {"v_or_b32", 2, [](U a, U b, U) { return a | b; }},
      {"v_xor_b32", 2, [](U a, U b, U) { return a ^ b; }},
      {"v_min3_i32", 3, [](U a, U b, U c) { return static_cast<U>(std::min({static_cast<I>(a), static_cast<I>(b), static_cast<I>(c)})); }},
      {"v_max3_i32", 3, [](U a, U b, U c) { return static_cast<U>(std::max({static_cast<I>(a), static_cast<I>(b), static_cast<I>(c)})); }},
      {"v_min3_u32", 3, [](U a, U b, U c) { return std::min({a, b, c}); }},
      {"v_max3_u32", 3, [](U a, U b, U c) { return std::max({a, b, c}); }},
      {"v_med3_u32", 3, [](U a, U b, U c) { return std::max(std::min(a, b), std::min(std::max(a, b), c)); }},
      {"v_maxmin_u32", 3, [](U a, U b, U c) { return std::min(std::max(a, b), c); }},
      {"v_minmax_u32", 3, [](U a, U b, U c) { return std::max(std::min(a, b), c); }},
      {"v_maxmin_i32", 3,
       [](U a, U b, U c) {
         return static_cast<U>(std::min(std::max(static_cast<I>(a), static_cast<I>(b)), static_cast<I>(c)));
       }},
      {"v_minmax_i32", 3,
       [](U a, U b, U c) {
         return static_cast<U>(std::max(std::min(static_cast<I>(a), static_cast<I>(b)), static_cast<I>(c)));
       }},
      {"v_bfe_i32", 3,
       [](U a, U b, U c) {
         const U width = std::min(c % 32, 32 - b % 32);
         return c % 32 == 0 ? 0U : static_cast<U>(static_cast<I>(a << (32 - b % 32 - width)) >> (32 - width));
       }},
      {"v_mul_hi_i32_i24", 2,
       [](U a, U b, U) {
         return static_cast<U>((L{static_cast<I>(a << 8)} >> 8) * (L{static_cast<I>(b << 8)} >> 8) >> 32);
       }},
      {"v_mad_i32_i24", 3,
       [](U a, U b, U c) {
         return static_cast<U>((L{static_cast<I>(a << 8)} >> 8) * (L{static_cast<I>(b << 8)} >> 8)) + c;
       }},
      {"v_mad_u32_u16", 3, [](U a, U b, U c) { return (a & 0xFFFF) * (b & 0xFFFF) + c; }},
      {"v_mad_i32_i16", 3,
       [](U a, U b, U c) {
         return static_cast<U>(static_cast<std::int16_t>(a) * static_cast<std::int16_t>(b)) + c;
       }},
      {"v_cls_i32", 1,
       [](U a, U, U) {
         const U same = static_cast<I>(a) < 0 ? ~a : a;
         return same == 0 ? ~0U : static_cast<U>(__builtin_clz(same));
       }},
      {"v_sad_hi_u8", 3,
       [](U a, U b, U c) {
         U sum = 0;
         for (unsigned i = 0; i < 4; ++i) sum += gap(byte_of(a, i), byte_of(b, i));
         return (sum << 16) + c;
       }},
      {"v_sad_u16", 3, [](U a, U b, U c) { return gap(a & 0xFFFF, b & 0xFFFF) + gap(a >> 16, b >> 16) + c; }},
      {"v_msad_u8", 3,
       [](U a, U b, U c) {
         for (unsigned i = 0; i < 4; ++i) c += byte_of(b, i) == 0 ? 0 : gap(byte_of(a, i), byte_of(b, i));
         return c;
       }},
      {"v_lerp_u8", 3,
       [](U a, U b, U c) {
         U r = 0;
         for (unsigned i = 0; i < 4; ++i) r |= (byte_of(a, i) + byte_of(b, i) + (byte_of(c, i) & 1)) / 2 << 8 * i;
         return r;
       }},
      {"v_cvt_pk_i16_i32", 2,
       [](U a, U b, U) {
         const auto narrow = [](U x) { return static_cast<U>(std::clamp(static_cast<I>(x), -32768, 32767)) & 0xFFFF; };
         return narrow(a) | narrow(b) << 16;
       }},
      {"v_cvt_pk_u16_u32", 2, [](U a, U b, U) { return std::min(a, 0xFFFFU) | std::min(b, 0xFFFFU) << 16; }},
  };
  std::mt19937 generator(1);
  for (const Case& c : cases) {
    for (const WaveSize wave : {WaveSize::wave32, WaveSize::wave64}) {
      Bench bench({Generation::gfx11, wave, VectorChoice::best});
      for (unsigned lane = 0; lane < bench.wave.lanes(); ++lane) {
        for (unsigned r = 1; r <= 3; ++r) bench.vgpr(r, lane) = generator() >> generator() % 3 * 9;
        if (std::string(c.name) == "v_perm_b32") bench.vgpr(3, lane) &= 0x0F0F0F0F;
        bench.vgpr(0, lane) = 0xBAD;
      }
      const W exec = W{generator()} << 32 | generator();
      bench.set_exec(wave == WaveSize::wave32 ? exec & 0xFFFFFFFF : exec);
      REQUIRE_FALSE(bench.run(encode::vop3(c.name, 0, v(1), c.sources > 1 ? v(2) : 0, c.sources > 2 ? v(3) : 0)));
      for (unsigned lane = 0; lane < bench.wave.lanes(); ++lane) {
        const U a = bench.vgpr(1, lane), b = bench.vgpr(2, lane), third = bench.vgpr(3, lane);
        INFO(c.name << " lane " << lane << std::hex << ": " << a << " " << b << " " << third);
        CHECK(bench.vgpr(0, lane) == ((exec >> lane & 1) != 0 ? c.expected(a, b, third) : 0xBAD));
      }
    }
  }
}

TEST_CASE("simulator: sums with carry, saturation, and 64-bit integers", "[simulator][wave]") {
  std::mt19937_64 generator(2);
  Bench bench({Generation::gfx11, WaveSize::wave64, VectorChoice::best});
  for (unsigned lane = 0; lane < 64; ++lane) {
    for (unsigned r = 2; r <= 6; r += 2) bench.set_vgpr64(r, lane, generator());
    if (lane % 4 == 0) bench.vgpr(2, lane) = bench.vgpr(4, lane) = 0xFFFFFFFF;
  }
  bench.sgpr(40) = 0x12345;
  bench.sgpr(41) = 0x6789A;
  // A 64-bit sum and difference by halves, and the product of the low words, or of two scalars, plus 64 bits.
  REQUIRE_FALSE(bench.run(encode::join(
      {encode::vop3sd("v_add_co_u32", 10, 20, v(2), v(4)), encode::vop3sd("v_add_co_ci_u32", 11, 22, v(3), v(5), 20),
       encode::vop3sd("v_sub_co_u32", 12, 24, v(2), v(4)), encode::vop3sd("v_sub_co_ci_u32", 13, 26, v(3), v(5), 24),
       encode::vop3sd("v_mad_u64_u32", 14, 28, v(2), v(4), v(6)), encode::vop3("v_lshlrev_b64", 16, v(2), v(4)),
       encode::vop3sd("v_mad_u64_u32", 20, 44, 40, 41, v(6)),
       encode::vop3("v_ashrrev_i64", 18, v(2), v(4)), encode::vop3("v_add_nc_u32", 30, v(2), v(4), 0, {.clamp = true}),
       encode::vop3("v_sub_nc_i32", 31, v(2), v(4), 0, {.clamp = true})})));
  W sum_carry = 0, difference_borrow = 0, product_carry = 0;
  for (unsigned lane = 0; lane < 64; ++lane) {
    const W a = bench.vgpr64(2, lane), b = bench.vgpr64(4, lane), c = bench.vgpr64(6, lane);
    const U a32 = static_cast<U>(a), b32 = static_cast<U>(b);
    CHECK(bench.vgpr64(10, lane) == a + b);
    CHECK(bench.vgpr64(12, lane) == a - b);
    CHECK(bench.vgpr64(14, lane) == W{a32} * b32 + c);
    CHECK(bench.vgpr64(20, lane) == W{0x12345} * 0x6789A + c);
    CHECK(bench.vgpr64(16, lane) == b << a % 64);
    CHECK(bench.vgpr64(18, lane) == static_cast<W>(static_cast<L>(b) >> a % 64));
    CHECK(bench.vgpr(30, lane) == static_cast<U>(std::min<W>(W{a32} + b32, 0xFFFFFFFF)));
    const L exact = L{static_cast<I>(a32)} - static_cast<I>(b32);
    CHECK(static_cast<I>(bench.vgpr(31, lane)) == std::clamp<L>(exact, INT32_MIN, INT32_MAX));
    sum_carry |= W{a + b < a} << lane;
    difference_borrow |= W{a < b} << lane;
    product_carry |= W{W{a32} * b32 + c < c} << lane;
  }
  CHECK(bench.wave.scalar64(22) == sum_carry);
  CHECK(bench.wave.scalar64(26) == difference_borrow);
  CHECK(bench.wave.scalar64(28) == product_carry);
}

TEST_CASE("simulator: packed and dot-product instructions", "[simulator][wave]") {
  std::mt19937 generator(3);
  Bench bench;
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned r = 1; r <= 3; ++r) bench.vgpr(r, lane) = generator();
  }
  constexpr unsigned swapped_low = 1, swapped_high = 2;  // source 0 with its halves exchanged
  REQUIRE_FALSE(bench.run(
      encode::join({encode::vop3p("v_pk_add_u16", 10, v(1), v(2)),
                    encode::vop3p("v_pk_sub_i16", 11, v(1), v(2), 0, swapped_low, swapped_high),
                    encode::vop3p("v_pk_mad_u16", 12, v(1), v(2), v(3)), encode::vop3p("v_pk_max_i16", 13, v(1), v(2)),
                    encode::vop3p("v_pk_lshrrev_b16", 14, v(1), v(2)),
                    encode::vop3p("v_pk_add_i16", 15, v(1), v(2), 0, 0, 7, 0, 0, true),
                    encode::vop3p("v_dot4_i32_iu8", 16, v(1), v(2), v(3), 0, 7, 1),
                    encode::vop3p("v_dot8_u32_u4", 17, v(1), v(2), v(3)),
                    encode::vop3p("v_dot4_u32_u8", 18, v(1), v(2), v(3), 0, 7, 0, 0, true)})));
  for (unsigned lane = 0; lane < 32; ++lane) {
    const U a = bench.vgpr(1, lane), b = bench.vgpr(2, lane), c = bench.vgpr(3, lane);
    const auto low = [](U x) { return x & 0xFFFF; };
    const auto high = [](U x) { return x >> 16; };
    const auto s16 = [](U x) { return static_cast<I>(static_cast<std::int16_t>(x)); };
    const auto join = [](U l, U h) { return (l & 0xFFFF) | h << 16; };
    CHECK(bench.vgpr(10, lane) == join(low(a) + low(b), high(a) + high(b)));
    CHECK(bench.vgpr(11, lane) == join(high(a) - low(b), low(a) - high(b)));
    CHECK(bench.vgpr(12, lane) == join(low(a) * low(b) + low(c), high(a) * high(b) + high(c)));
    CHECK(bench.vgpr(13, lane) ==
          join(static_cast<U>(std::max(s16(a), s16(b))), static_cast<U>(std::max(s16(high(a)), s16(high(b))))));
    CHECK(bench.vgpr(14, lane) == join(low(b) >> low(a) % 16, high(b) >> high(a) % 16));
    const auto saturated = [&](U x, U y) { return static_cast<U>(std::clamp(s16(x) + s16(y), -32768, 32767)); };
    CHECK(bench.vgpr(15, lane) == join(saturated(a, b), saturated(high(a), high(b))));
    U mixed = c, nibbles = c;
    W clamped = c;
    for (unsigned i = 0; i < 4; ++i) {
      mixed += static_cast<U>(static_cast<std::int8_t>(byte_of(a, i)) * static_cast<I>(byte_of(b, i)));
      clamped += W{byte_of(a, i)} * byte_of(b, i);
    }
    for (unsigned i = 0; i < 8; ++i) nibbles += (a >> 4 * i & 15) * (b >> 4 * i & 15);
    CHECK(bench.vgpr(16, lane) == mixed);
    CHECK(bench.vgpr(17, lane) == nibbles);
    CHECK(bench.vgpr(18, lane) == std::min<W>(clamped, 0xFFFFFFFF));
  }
}

TEST_CASE("simulator: the other packed and dot-product instructions", "[simulator][wave]") {
  std::mt19937 generator(8);
  Bench bench;
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned r = 1; r <= 3; ++r) bench.vgpr(r, lane) = generator();
  }
  const auto s16 = [](U x) { return static_cast<I>(static_cast<std::int16_t>(x)); };
  struct Packed {
    const char* name;
    bool three;
    std::function<I(U, U, U)> of_half;  // of 16 bits each
  };
  const Packed packed[] = {
      {"v_pk_sub_u16", false, [](U a, U b, U) { return static_cast<I>(a - b); }},
      {"v_pk_mul_lo_u16", false, [](U a, U b, U) { return static_cast<I>(a * b); }},
      {"v_pk_mad_i16", true, [](U a, U b, U c) { return static_cast<I>(a * b + c); }},
      {"v_pk_min_i16", false, [&](U a, U b, U) { return std::min(s16(a), s16(b)); }},
      {"v_pk_min_u16", false, [](U a, U b, U) { return static_cast<I>(std::min(a, b)); }},
      {"v_pk_max_u16", false, [](U a, U b, U) { return static_cast<I>(std::max(a, b)); }},
      {"v_pk_lshlrev_b16", false, [](U a, U b, U) { return static_cast<I>(b << a % 16); }},
      {"v_pk_ashrrev_i16", false, [&](U a, U b, U) { return s16(b) >> a % 16; }},
  };
  for (const Packed& each : packed) {
    REQUIRE_FALSE(bench.run(encode::vop3p(each.name, 10, v(1), v(2), each.three ? v(3) : 0)));
    for (unsigned lane = 0; lane < 32; ++lane) {
      const U a = bench.vgpr(1, lane), b = bench.vgpr(2, lane), c = bench.vgpr(3, lane);
      const U low = static_cast<U>(each.of_half(a & 0xFFFF, b & 0xFFFF, c & 0xFFFF)) & 0xFFFF;
      const U high = static_cast<U>(each.of_half(a >> 16, b >> 16, c >> 16)) & 0xFFFF;
      INFO(each.name << " lane " << lane);
      CHECK(bench.vgpr(10, lane) == (low | high << 16));
    }
  }
  // Nibbles, the first source's with signs; then with both signs and a clamped sum.
  for (unsigned lane = 0; lane < 4; ++lane) bench.vgpr(3, lane) = 0x7FFFFFFF, bench.vgpr(1, lane) = bench.vgpr(2, lane);
  REQUIRE_FALSE(bench.run(encode::join({encode::vop3p("v_dot8_i32_iu4", 10, v(1), v(2), v(3), 0, 7, 1),
                                        encode::vop3p("v_dot8_i32_iu4", 11, v(1), v(2), v(3), 0, 7, 3, 0, true)})));
  for (unsigned lane = 0; lane < 32; ++lane) {
    const auto nibble = [](U x, unsigned i) { return static_cast<I>(x << (28 - 4 * i)) >> 28; };
    U one = bench.vgpr(3, lane);
    L both = static_cast<I>(bench.vgpr(3, lane));
    for (unsigned i = 0; i < 8; ++i) {
      const U b = bench.vgpr(2, lane);
      one += static_cast<U>(nibble(bench.vgpr(1, lane), i) * static_cast<I>(b >> 4 * i & 15));
      both += nibble(bench.vgpr(1, lane), i) * nibble(b, i);
    }
    CHECK(bench.vgpr(10, lane) == one);
    CHECK(static_cast<I>(bench.vgpr(11, lane)) == std::clamp<L>(both, INT32_MIN, INT32_MAX));
  }
}

TEST_CASE("simulator: dot products of pairs of floats", "[simulator][wave]") {
  // Small whole numbers, whose sums are exact: as halves and as the upper 16 bits of floats.
  const auto bits_of = [](float x) {
    U bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
  };
  const auto half = [](int x) {
    if (x == 0) return 0U;
    const unsigned size = static_cast<unsigned>(x < 0 ? -x : x), top = 31U - static_cast<unsigned>(__builtin_clz(size));
    return (x < 0 ? 0x8000U : 0U) | (top + 15) << 10 | ((size << (10 - top)) & 0x3FFU);
  };
  std::mt19937 generator(9);
  std::uniform_int_distribution<int> small(-9, 9);
  Bench bench;
  int a[32][2], b[32][2], c[32];
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned i = 0; i < 2; ++i) a[lane][i] = small(generator), b[lane][i] = small(generator);
    c[lane] = small(generator);
    const auto pair = [&](const int(&x)[2], bool bfloat) {
      if (!bfloat) return half(x[0]) | half(x[1]) << 16;
      return bits_of(static_cast<float>(x[0])) >> 16 | (bits_of(static_cast<float>(x[1])) & 0xFFFF0000U);
    };
    bench.vgpr(1, lane) = pair(a[lane], false);
    bench.vgpr(2, lane) = pair(b[lane], false);
    bench.vgpr(3, lane) = pair(a[lane], true);
    bench.vgpr(4, lane) = pair(b[lane], true);
    bench.vgpr(5, lane) = bench.vgpr(12, lane) = bits_of(static_cast<float>(c[lane]));
    bench.vgpr(6, lane) = half(c[lane]);
    bench.vgpr(7, lane) = bits_of(static_cast<float>(c[lane])) >> 16;
  }
  REQUIRE_FALSE(bench.run(encode::join({encode::vop3p("v_dot2_f32_f16", 10, v(1), v(2), v(5)),
                                        encode::vop3p("v_dot2_f32_bf16", 11, v(3), v(4), v(5)),
                                        {encode::vop2("v_dot2acc_f32_f16", 12, v(1), v(2))},
                                        encode::vop3("v_dot2_f16_f16", 13, v(1), v(2), v(6)),
                                        encode::vop3("v_dot2_bf16_bf16", 14, v(3), v(4), v(7)),
                                        encode::vop3p("v_dot2_f32_f16", 15, v(1), v(2), v(5), 1, 6, 2)})));
  for (unsigned lane = 0; lane < 32; ++lane) {
    const int sum = a[lane][0] * b[lane][0] + a[lane][1] * b[lane][1] + c[lane];
    INFO("lane " << lane);
    CHECK(bench.vgpr(10, lane) == bits_of(static_cast<float>(sum)));
    CHECK(bench.vgpr(11, lane) == bits_of(static_cast<float>(sum)));
    CHECK(bench.vgpr(12, lane) == bits_of(static_cast<float>(sum)));
    CHECK((bench.vgpr(13, lane) & 0xFFFF) == half(sum));
    CHECK((bench.vgpr(14, lane) & 0xFFFF) == bits_of(static_cast<float>(sum)) >> 16);
    // The halves of the first source exchanged, the low product negated.
    const int turned = -a[lane][1] * b[lane][0] + a[lane][0] * b[lane][1] + c[lane];
    CHECK(bench.vgpr(15, lane) == bits_of(static_cast<float>(turned)));
  }
}

TEST_CASE("simulator: comparisons, all conditions and classes", "[simulator][wave]") {
  // Bits of a condition: less 1, equal 2, greater 4, unordered 8.
  const std::pair<const char*, unsigned> float_conditions[] = {
      {"f", 0}, {"lt", 1},  {"eq", 2},   {"le", 3},   {"gt", 4},   {"lg", 5},   {"ge", 6},   {"o", 7},
      {"u", 8}, {"nge", 9}, {"nlg", 10}, {"ngt", 11}, {"nle", 12}, {"neq", 13}, {"nlt", 14}, {"t", 15}};
  const std::pair<const char*, unsigned> integer_conditions[] = {{"f", 0},  {"lt", 1}, {"eq", 2}, {"le", 3},
                                                                 {"gt", 4}, {"ne", 5}, {"ge", 6}, {"t", 7}};
  constexpr U one = 0x3F800000, two = 0x40000000, nan = 0x7FC00000;
  const U rows[][2] = {{one, two}, {one, one}, {two, one}, {nan, one}};
  Bench bench;
  for (unsigned lane = 0; lane < 32; ++lane) {
    bench.vgpr(1, lane) = rows[lane % 4][0];
    bench.vgpr(2, lane) = rows[lane % 4][1];
    bench.vgpr(3, lane) = lane % 3 == 0 ? 0xFFFFFFFF : lane;
    bench.vgpr(4, lane) = lane % 2 == 0 ? 5 : 0xFFFFFFFF;
  }
  for (const auto& [name, mask] : float_conditions) {
    U expected = 0;
    for (unsigned lane = 0; lane < 32; ++lane) expected |= (mask >> lane % 4 & 1) << lane;
    bench.set_exec(0xFFFFFF);
    REQUIRE_FALSE(bench.run(encode::vop3((std::string("v_cmp_") + name + "_f32").c_str(), 20, v(1), v(2))));
    INFO(name);
    CHECK(bench.sgpr(20) == (expected & 0xFFFFFF));
    REQUIRE_FALSE(bench.run({encode::vopc((std::string("v_cmpx_") + name + "_f32").c_str(), v(1), v(2))}));
    CHECK(bench.exec() == (expected & 0xFFFFFF));
  }
  bench.set_exec(0xFFFFFFFF);
  for (const auto& [name, mask] : integer_conditions) {
    U signed_expected = 0, unsigned_expected = 0;
    for (unsigned lane = 0; lane < 32; ++lane) {
      const U a = bench.vgpr(3, lane), b = bench.vgpr(4, lane);
      const I x = static_cast<I>(a), y = static_cast<I>(b);
      signed_expected |= (mask >> (x < y ? 0 : x == y ? 1 : 2) & 1) << lane;
      unsigned_expected |= (mask >> (a < b ? 0 : a == b ? 1 : 2) & 1) << lane;
    }
    INFO(name);
    REQUIRE_FALSE(
        bench.run(encode::join({{encode::vopc((std::string("v_cmp_") + name + "_i32").c_str(), v(3), v(4))},
                                encode::vop3((std::string("v_cmp_") + name + "_u32").c_str(), 20, v(3), v(4))})));
    CHECK(bench.sgpr(operand::vcc_lo) == signed_expected);
    CHECK(bench.sgpr(20) == unsigned_expected);
  }
  const U classes[] = {0x7F800001, 0xFFC00000, 0xFF800000, 0xBF800000, 0x80000001,
                       0x80000000, 0,          1,          0x3F800000, 0x7F800000};
  for (unsigned lane = 0; lane < 32; ++lane) bench.vgpr(5, lane) = classes[lane % 10];
  for (unsigned k = 0; k < 10; ++k) {
    U expected = 0;
    for (unsigned lane = 0; lane < 32; ++lane) expected |= U{lane % 10 == k} << lane;
    bench.sgpr(30) = 1U << k;
    REQUIRE_FALSE(bench.run(encode::vop3("v_cmp_class_f32", 20, v(5), 30)));
    INFO("class " << k);
    CHECK(bench.sgpr(20) == expected);
  }
}

TEST_CASE("simulator VALU: four sums of byte distances, packed and in words of their own", "[simulator][wave]") {
  std::mt19937 random(7);
  Bench bench;
  for (unsigned r = 0; r < 12; ++r) {
    for (unsigned lane = 0; lane < 32; ++lane) bench.vgpr(r, lane) = static_cast<std::uint32_t>(random());
  }
  for (unsigned lane = 0; lane < 8; ++lane) bench.vgpr(2, lane) &= 0xFF00FFFFU;  // a byte of 0
  for (unsigned lane = 8; lane < 16; ++lane) bench.vgpr(6, lane) = bench.vgpr(4, lane) = ~0U;
  const auto sums = [](const char* name, unsigned to, bool clamp) {
    return encode::vop3(name, to, encode::v(0), encode::v(2), encode::v(4), {.clamp = clamp});
  };
  REQUIRE_FALSE(
      bench.run(encode::join({sums("v_mqsad_u32_u8", 16, false), sums("v_mqsad_u32_u8", 20, true),
                              sums("v_mqsad_pk_u16_u8", 24, false), sums("v_mqsad_pk_u16_u8", 26, true),
                              sums("v_qsad_pk_u16_u8", 28, false), sums("v_qsad_pk_u16_u8", 30, true)})));
  for (unsigned lane = 0; lane < 32; ++lane) {
    const std::uint64_t bytes = bench.vgpr64(0, lane);
    for (unsigned window = 0; window < 4; ++window) {
      std::uint64_t all = 0, masked = 0;  // the masked sum leaves out where the second operand's byte is 0
      for (unsigned i = 0; i < 4; ++i) {
        const int a = static_cast<int>(bytes >> 8 * (window + i) & 0xFF);
        const int b = static_cast<int>(bench.vgpr(2, lane) >> 8 * i & 0xFF);
        all += static_cast<std::uint64_t>(std::abs(a - b));
        if (b != 0) masked += static_cast<std::uint64_t>(std::abs(a - b));
      }
      const std::uint64_t wide = masked + bench.vgpr(4 + window, lane);
      CHECK(bench.vgpr(16 + window, lane) == static_cast<std::uint32_t>(wide));
      CHECK(bench.vgpr(20 + window, lane) == std::min<std::uint64_t>(wide, 0xFFFFFFFFU));
      const auto half = [&](unsigned reg) { return bench.vgpr64(reg, lane) >> 16 * window & 0xFFFF; };
      CHECK(half(24) == ((masked + half(4)) & 0xFFFF));
      CHECK(half(26) == std::min<std::uint64_t>(masked + half(4), 0xFFFF));
      CHECK(half(28) == ((all + half(4)) & 0xFFFF));
      CHECK(half(30) == std::min<std::uint64_t>(all + half(4), 0xFFFF));
    }
  }
}

}  // namespace kiln::simulator::test
