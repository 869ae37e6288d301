#include "simulator/wave/semantics_table.hpp"
#include "simulator/wave/vector/family.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {
namespace {

using Int = std::int32_t;

KILN_LANE float legacy_product(float a, float b) { return a == 0.0F || b == 0.0F ? 0.0F : a * b; }
KILN_LANE Int signed24(Word x) { return static_cast<Int>(x << 8U) >> 8; }
KILN_LANE Word unsigned24(Word x) { return x & 0xFFFFFFU; }

// Two products of halves are added to the accumulator in order, each rounded once.
KILN_LANE float dot2(Word a, Word b, float c) {
  const float low = __builtin_fmaf(half_to_float(a & 0xFFFFU), half_to_float(b & 0xFFFFU), c);
  return __builtin_fmaf(half_to_float(a >> 16U), half_to_float(b >> 16U), low);
}

// Integer sums whose clamp saturates; the plain form is the fast one.
template <auto Plain, auto Saturating>
Next sum(Wave& wave, const Op& op) {
  return (op.output & output_clamp) != 0 ? vector<Saturating>(wave, op) : vector<Plain>(wave, op);
}

constexpr Semantics vop2_entries[] = {
    lanes<[](float a, float b) { return a + b; }>("v_add_f32"),
    lanes<[](float a, float b) { return a - b; }>("v_sub_f32"),
    lanes<[](float a, float b) { return b - a; }>("v_subrev_f32"),
    lanes<[](float a, float b) { return a * b; }>("v_mul_f32"),
    lanes<[](float a, float b) { return legacy_product(a, b); }>("v_mul_dx9_zero_f32"),
    lanes<[](float a, float b, float c) { return __builtin_fmaf(a, b, c); }>("v_fmac_f32"),
    lanes<[](float a, float b, float c) { return __builtin_fmaf(a, b, c); }>("v_fmamk_f32"),
    lanes<[](float a, float b, float c) { return __builtin_fmaf(a, b, c); }>("v_fmaak_f32"),
    lanes<[](float a, float b, float c) { return a == 0.0F || b == 0.0F ? 0.0F + c : __builtin_fmaf(a, b, c); }>(
        "v_fmac_dx9_zero_f32"),
    lanes<[](const Wave& w, float a, float b) -> Chosen<Word> {
      return {minimum<F32>(as_bits(a), as_bits(b), w.ieee)};
    }>("v_min_f32"),
    lanes<[](const Wave& w, float a, float b) -> Chosen<Word> {
      return {maximum<F32>(as_bits(a), as_bits(b), w.ieee)};
    }>("v_max_f32"),

    lanes<[](Word a, Word b) { return static_cast<Word>(static_cast<std::int64_t>(signed24(a)) * signed24(b)); }>(
        "v_mul_i32_i24"),
    lanes<[](Word a, Word b) {
      return static_cast<Word>((static_cast<std::int64_t>(signed24(a)) * signed24(b) >> 32U));
    }>("v_mul_hi_i32_i24"),
    lanes<[](Word a, Word b) { return unsigned24(a) * unsigned24(b); }>("v_mul_u32_u24"),
    lanes<[](Word a, Word b) { return static_cast<Word>((static_cast<Wide>(unsigned24(a)) * unsigned24(b) >> 32U)); }>(
        "v_mul_hi_u32_u24"),
    lanes<[](Int a, Int b) { return a < b ? a : b; }>("v_min_i32"),
    lanes<[](Int a, Int b) { return b < a ? a : b; }>("v_max_i32"),
    lanes<[](Word a, Word b) { return a < b ? a : b; }>("v_min_u32"),
    lanes<[](Word a, Word b) { return b < a ? a : b; }>("v_max_u32"),
    lanes<[](Word a, Word b) { return b << (a & 31U); }>("v_lshlrev_b32"),
    lanes<[](Word a, Word b) { return (b >> (a & 31U)); }>("v_lshrrev_b32"),
    lanes<[](Word a, Int b) { return (b >> (a & 31U)); }>("v_ashrrev_i32"),
    lanes<[](Word a, Word b) { return a & b; }>("v_and_b32"),
    lanes<[](Word a, Word b) { return a | b; }>("v_or_b32"),
    lanes<[](Word a, Word b) { return a ^ b; }>("v_xor_b32"),
    lanes<[](Word a, Word b) { return ~(a ^ b); }>("v_xnor_b32"),
    {"v_add_nc_u32", &sum<[](Word a, Word b) { return a + b; }, [](Word a, Word b) { return a + b < a ? ~0U : a + b; }>,
     takes::saturation},
    {"v_sub_nc_u32", &sum<[](Word a, Word b) { return a - b; }, [](Word a, Word b) { return a < b ? 0U : a - b; }>,
     takes::saturation},
    {"v_subrev_nc_u32", &sum<[](Word a, Word b) { return b - a; }, [](Word a, Word b) { return b < a ? 0U : b - a; }>,
     takes::saturation},

    lanes<[](Half a, Half b) { return Half{a.value + b.value}; }>("v_add_f16"),
    lanes<[](Half a, Half b) { return Half{a.value - b.value}; }>("v_sub_f16"),
    lanes<[](Half a, Half b) { return Half{b.value - a.value}; }>("v_subrev_f16"),
    lanes<[](Half a, Half b) { return Half{a.value * b.value}; }>("v_mul_f16"),
    lanes<[](Half a, Half b, Half c) -> Precise {
      return {static_cast<double>(a.value) * static_cast<double>(b.value) + static_cast<double>(c.value)};
    }>("v_fmac_f16"),
    lanes<[](Half a, Half b, Half c) -> Precise {
      return {static_cast<double>(a.value) * static_cast<double>(b.value) + static_cast<double>(c.value)};
    }>("v_fmamk_f16"),
    lanes<[](Half a, Half b, Half c) -> Precise {
      return {static_cast<double>(a.value) * static_cast<double>(b.value) + static_cast<double>(c.value)};
    }>("v_fmaak_f16"),
    lanes<[](const Wave& w, HalfBits a, HalfBits b) -> Chosen<std::uint16_t> {
      return {static_cast<std::uint16_t>(maximum<F16>(a.bits, b.bits, w.ieee))};
    }>("v_max_f16"),
    lanes<[](const Wave& w, HalfBits a, HalfBits b) -> Chosen<std::uint16_t> {
      return {static_cast<std::uint16_t>(minimum<F16>(a.bits, b.bits, w.ieee))};
    }>("v_min_f16"),
    lanes<[](Half a, std::int16_t b) -> Precise {
      return {__builtin_scalbn(static_cast<double>(a.value), b > 64 ? 64 : b < -64 ? -64 : b)};
    }>("v_ldexp_f16"),
    lanes<[](Word a, Word b, float c) { return dot2(a, b, c); }>("v_dot2acc_f32_f16"),
};

}  // namespace

SemanticsList vop2() noexcept { return list_of(vop2_entries); }

// Floating-point instructions that only VOP3 has.

namespace {

using Int = std::int32_t;

KILN_LANE Chosen<Word> least(const Wave& w, float a, float b, float c) {
  return {minimum<F32>(minimum<F32>(as_bits(a), as_bits(b), w.ieee), as_bits(c), w.ieee)};
}
KILN_LANE Chosen<Word> greatest(const Wave& w, float a, float b, float c) {
  return {maximum<F32>(maximum<F32>(as_bits(a), as_bits(b), w.ieee), as_bits(c), w.ieee)};
}
KILN_LANE Chosen<std::uint16_t> chosen(Word bits) { return {static_cast<std::uint16_t>(bits)}; }

// The face of a cube that a direction hits, and its coordinates there.
KILN_LANE bool mostly_z(float x, float y, float z) {
  return __builtin_fabsf(z) >= __builtin_fabsf(x) && __builtin_fabsf(z) >= __builtin_fabsf(y);
}
KILN_LANE bool mostly_y(float x, float y) { return __builtin_fabsf(y) >= __builtin_fabsf(x); }
KILN_LANE float cube_face(float x, float y, float z) {
  if (mostly_z(x, y, z)) return z < 0.0F ? 5.0F : 4.0F;
  if (mostly_y(x, y)) return y < 0.0F ? 3.0F : 2.0F;
  return x < 0.0F ? 1.0F : 0.0F;
}
KILN_LANE float cube_s(float x, float y, float z) {
  if (mostly_z(x, y, z)) return z < 0.0F ? -x : x;
  if (mostly_y(x, y)) return x;
  return x < 0.0F ? z : -z;
}
KILN_LANE float cube_t(float x, float y, float z) {
  if (mostly_z(x, y, z)) return -y;
  if (mostly_y(x, y)) return y < 0.0F ? -z : z;
  return -y;
}
KILN_LANE float cube_major(float x, float y, float z) {
  if (mostly_z(x, y, z)) return z * 2.0F;
  if (mostly_y(x, y)) return y * 2.0F;
  return x * 2.0F;
}

KILN_LANE Int exponent_limit(Int exponent) { return exponent > 4000 ? 4000 : exponent < -4000 ? -4000 : exponent; }

// Two products of halves, and an accumulator of the same width.
KILN_LANE Precise dot2_half(Word a, Word b, Half c) {
  const double low = static_cast<double>(half_to_float(a & 0xFFFFU)) * static_cast<double>(half_to_float(b & 0xFFFFU));
  const double high = static_cast<double>(half_to_float(a >> 16U)) * static_cast<double>(half_to_float(b >> 16U));
  return {low + high + static_cast<double>(c.value)};
}
KILN_LANE float of_bfloat(Word bits) { return as_float(bits << 16U); }
KILN_LANE std::uint16_t to_bfloat(float value) {
  const Word bits = as_bits(value);
  if (is_nan<F32>(bits)) return static_cast<std::uint16_t>(quiet<F32>(bits) >> 16U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + (bits >> 16U & 1U)) >> 16U);
}

// 2/pi: 1201 bits of its fraction, the highest first.
constexpr Wide two_over_pi[] = {0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041, 0xFE5163ABDEBBC561,
                                0xB7246E3A424DD2E0, 0x06492EEA09D1921C, 0xFE1DEB1CB129A73E, 0xE88235F52EBB4484,
                                0xE99C7026B45F7E41, 0x3991D639835339F4, 0x9C845F8BBDF9283B, 0x1FF897FFDE05980F,
                                0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D, 0x7527BAC7EBE5F17B,
                                0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B0000};

// 53 of those bits, from where they matter to a number's product with 2/pi: `part` times 53 bits further down, and as
// many more as the number's exponent exceeds 54. Numbers from 2^945 on are expected scaled down by 2^128.
double part_of_two_over_pi(double number, Word part) {
  constexpr int first_shifted = 1077, first_scaled = 1968, bits = 53;
  constexpr int words = sizeof(two_over_pi) / sizeof(Wide);
  const int exponent = static_cast<int>(as_bits(number) >> 52U & 0x7FFU);
  const int shift = static_cast<int>(part & 31U) * bits + (exponent > first_shifted ? exponent - first_shifted : 0);
  const int word = shift / 64, within = shift % 64;
  if (word >= words) return 0;
  const Wide high = two_over_pi[word], low = word + 1 < words ? two_over_pi[word + 1] : 0;
  const Wide window = within == 0 ? high : high << within | low >> (64 - within);
  const int scale = -bits - shift + (exponent >= first_scaled ? 128 : 0);
  return __builtin_scalbn(static_cast<double>(window >> (64 - bits)), scale);
}

constexpr Semantics vop3_entries[] = {
    lanes<[](float a, float b, float c) { return __builtin_fmaf(a, b, c); }>("v_fma_f32"),
    lanes<[](double a, double b, double c) { return __builtin_fma(a, b, c); }>("v_fma_f64"),
    lanes<[](Half a, Half b, Half c) -> Precise {
      return {static_cast<double>(a.value) * static_cast<double>(b.value) + static_cast<double>(c.value)};
    }>("v_fma_f16"),
    lanes<[](float a, float b, float c) { return a == 0.0F || b == 0.0F ? 0.0F + c : __builtin_fmaf(a, b, c); }>(
        "v_fma_dx9_zero_f32"),
    lanes<[](double a, double b) { return a + b; }>("v_add_f64"),
    lanes<[](double a, double b) { return a * b; }>("v_mul_f64"),
    lanes<[](const Wave& w, double a, double b) -> Chosen<Wide> {
      return {minimum<F64>(as_bits(a), as_bits(b), w.ieee)};
    }>("v_min_f64"),
    lanes<[](const Wave& w, double a, double b) -> Chosen<Wide> {
      return {maximum<F64>(as_bits(a), as_bits(b), w.ieee)};
    }>("v_max_f64"),
    lanes<[](float a, Int b) { return __builtin_scalbnf(a, exponent_limit(b)); }>("v_ldexp_f32"),
    lanes<[](double a, Int b) { return __builtin_scalbn(a, exponent_limit(b)); }>("v_ldexp_f64"),
    lanes<[](double a, Word b) { return part_of_two_over_pi(a, b); }>("v_trig_preop_f64"),

    lanes<[](const Wave& w, float a, float b, float c) { return least(w, a, b, c); }>("v_min3_f32"),
    lanes<[](const Wave& w, float a, float b, float c) { return greatest(w, a, b, c); }>("v_max3_f32"),
    lanes<[](const Wave& w, float a, float b, float c) -> Chosen<Word> {
      return {median<F32>(as_bits(a), as_bits(b), as_bits(c), w.ieee)};
    }>("v_med3_f32"),
    lanes<[](const Wave& w, float a, float b, float c) -> Chosen<Word> {
      return {minimum<F32>(maximum<F32>(as_bits(a), as_bits(b), w.ieee), as_bits(c), w.ieee)};
    }>("v_maxmin_f32"),
    lanes<[](const Wave& w, float a, float b, float c) -> Chosen<Word> {
      return {maximum<F32>(minimum<F32>(as_bits(a), as_bits(b), w.ieee), as_bits(c), w.ieee)};
    }>("v_minmax_f32"),
    lanes<[](const Wave& w, HalfBits a, HalfBits b, HalfBits c) {
      return chosen(minimum<F16>(minimum<F16>(a.bits, b.bits, w.ieee), c.bits, w.ieee));
    }>("v_min3_f16"),
    lanes<[](const Wave& w, HalfBits a, HalfBits b, HalfBits c) {
      return chosen(maximum<F16>(maximum<F16>(a.bits, b.bits, w.ieee), c.bits, w.ieee));
    }>("v_max3_f16"),
    lanes<[](const Wave& w, HalfBits a, HalfBits b, HalfBits c) {
      return chosen(median<F16>(a.bits, b.bits, c.bits, w.ieee));
    }>("v_med3_f16"),
    lanes<[](const Wave& w, HalfBits a, HalfBits b, HalfBits c) {
      return chosen(minimum<F16>(maximum<F16>(a.bits, b.bits, w.ieee), c.bits, w.ieee));
    }>("v_maxmin_f16"),
    lanes<[](const Wave& w, HalfBits a, HalfBits b, HalfBits c) {
      return chosen(maximum<F16>(minimum<F16>(a.bits, b.bits, w.ieee), c.bits, w.ieee));
    }>("v_minmax_f16"),
    lanes<[](HalfBits a, HalfBits b) { return a.bits | b.bits << 16U; }>("v_pack_b32_f16"),

    lanes<[](float a, float b, float c) { return cube_face(a, b, c); }>("v_cubeid_f32"),
    lanes<[](float a, float b, float c) { return cube_s(a, b, c); }>("v_cubesc_f32"),
    lanes<[](float a, float b, float c) { return cube_t(a, b, c); }>("v_cubetc_f32"),
    lanes<[](float a, float b, float c) { return cube_major(a, b, c); }>("v_cubema_f32"),
    lanes<[](float a, float b, float c) {  // the multiply of lighting: nothing where the light does not reach
      const bool nothing = b <= -__FLT_MAX__ || b != b || c <= 0.0F || c != c;
      return nothing ? -__FLT_MAX__ : a == 0.0F || b == 0.0F ? 0.0F : a * b;
    }>("v_mullit_f32"),
    lanes<[](Word a, Word b, Half c) { return dot2_half(a, b, c); }>("v_dot2_f16_f16"),
    lanes<[](Word a, Word b, std::uint16_t c) {
      const float low = __builtin_fmaf(of_bfloat(a & 0xFFFFU), of_bfloat(b & 0xFFFFU), of_bfloat(c));
      return to_bfloat(__builtin_fmaf(of_bfloat(a >> 16U), of_bfloat(b >> 16U), low));
    }>("v_dot2_bf16_bf16"),
};

}  // namespace

SemanticsList vop3() noexcept { return list_of(vop3_entries); }

}  // namespace kiln::simulator::KILN_VECTOR_BUILD
