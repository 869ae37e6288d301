#include "simulator/wave/vector/family.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {
namespace {

// The transcendental unit knows no f32 denormals, neither in nor out.
KILN_LANE float flat(float value) { return as_float(flushed<F32>(as_bits(value))); }

KILN_LANE float reciprocal(float x) { return flat(1.0F / flat(x)); }
KILN_LANE float reciprocal_root(float x) {
  return flat(static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(flat(x)))));
}

// Angles are in turns. Beyond 256 turns the hardware gives up.
KILN_LANE double turns(double x) { return (x - __builtin_floor(x)) * 6.283185307179586476925; }
KILN_LANE float sine(float x) {
  if (as_bits(x) << 1U >= 0x7F800000U << 1U) return as_float(default_nan<F32>);
  if (flat(x) == 0.0F) return flat(x);
  return __builtin_fabsf(x) > 256.0F ? 0.0F : flat(static_cast<float>(__builtin_sin(turns(static_cast<double>(x)))));
}
KILN_LANE float cosine(float x) {
  if (as_bits(x) << 1U >= 0x7F800000U << 1U) return as_float(default_nan<F32>);
  return __builtin_fabsf(x) > 256.0F ? 1.0F : flat(static_cast<float>(__builtin_cos(turns(static_cast<double>(x)))));
}

KILN_LANE float fraction(float x) {
  const float rest = x - __builtin_floorf(x);
  return rest >= 1.0F ? as_float(0x3F7FFFFFU) : rest;
}
KILN_LANE double fraction(double x) {
  const double rest = x - __builtin_floor(x);
  return rest >= 1.0 ? as_double(0x3FEFFFFFFFFFFFFFU) : rest;
}

// Clang 14 has no roundeven. What GCC makes of rint without SSE 4.1 passes signalling NaNs on as they are.
#if defined(__clang__)
KILN_LANE float nearest_even(float x) { return __builtin_rintf(x); }
KILN_LANE double nearest_even(double x) { return __builtin_rint(x); }
#else
KILN_LANE float nearest_even(float x) { return __builtin_roundevenf(x); }
KILN_LANE double nearest_even(double x) { return __builtin_roundeven(x); }
#endif

KILN_LANE bool has_exponent(float x) { return x == x && __builtin_fabsf(x) <= __FLT_MAX__ && x != 0.0F; }
KILN_LANE bool has_exponent(double x) { return x == x && __builtin_fabs(x) <= __DBL_MAX__ && x != 0.0; }
KILN_LANE std::int32_t exponent_of(double x) {  // of a mantissa in [0.5, 1)
  Wide bits = as_bits(x) & 0x7FFFFFFFFFFFFFFFU;
  if (bits >> 52U != 0) return static_cast<std::int32_t>(bits >> 52U) - 1022;
  return -1010 - __builtin_clzll(bits);  // a denormal is below 2^-1022: bit 51 weighs 2^-1023
}
KILN_LANE double mantissa_of(double x) {
  Wide bits = as_bits(x);
  const Wide sign = bits & 0x8000000000000000U;
  bits &= 0x7FFFFFFFFFFFFFFFU;
  if (bits >> 52U == 0) bits <<= static_cast<unsigned>(__builtin_clzll(bits) - 11);
  return as_double(sign | (bits & 0xFFFFFFFFFFFFFU) | 0x3FE0000000000000U);
}

KILN_LANE Word reversed(Word x) {
  x = (x >> 1U & 0x55555555U) | (x & 0x55555555U) << 1U;
  x = (x >> 2U & 0x33333333U) | (x & 0x33333333U) << 2U;
  x = (x >> 4U & 0x0F0F0F0FU) | (x & 0x0F0F0F0FU) << 4U;
  return __builtin_bswap32(x);
}

constexpr Semantics vop1_entries[] = {
    {"v_clrexcp", &nothing},  // exceptions are not kept
    {"v_nop", &nothing},
    {"v_pipeflush", &nothing},
    lanes<[](Word a) { return a; }>("v_mov_b32"),
    lanes<[](std::uint16_t a) { return a; }>("v_mov_b16"),
    lanes<[](float a) { return __builtin_truncf(a); }>("v_trunc_f32"),
    lanes<[](float a) { return __builtin_ceilf(a); }>("v_ceil_f32"),
    lanes<[](float a) { return nearest_even(a); }>("v_rndne_f32"),
    lanes<[](float a) { return __builtin_floorf(a); }>("v_floor_f32"),
    lanes<[](float a) { return fraction(a); }>("v_fract_f32"),
    lanes<[](double a) { return __builtin_trunc(a); }>("v_trunc_f64"),
    lanes<[](double a) { return __builtin_ceil(a); }>("v_ceil_f64"),
    lanes<[](double a) { return nearest_even(a); }>("v_rndne_f64"),
    lanes<[](double a) { return __builtin_floor(a); }>("v_floor_f64"),
    lanes<[](double a) { return fraction(a); }>("v_fract_f64"),
    lanes<[](Half a) { return Half{__builtin_truncf(a.value)}; }>("v_trunc_f16"),
    lanes<[](Half a) { return Half{__builtin_ceilf(a.value)}; }>("v_ceil_f16"),
    lanes<[](Half a) { return Half{nearest_even(a.value)}; }>("v_rndne_f16"),
    lanes<[](Half a) { return Half{__builtin_floorf(a.value)}; }>("v_floor_f16"),
    lanes<[](Half a) {
      const float rest = a.value - __builtin_floorf(a.value);
      return Half{0.99951171875F < rest ? 0.99951171875F : rest};
    }>("v_fract_f16"),

    lanes<[](float a) { return flat(__builtin_exp2f(flat(a))); }>("v_exp_f32"),
    lanes<[](float a) { return __builtin_log2f(flat(a)); }>("v_log_f32"),
    lanes<[](float a) { return reciprocal(a); }>("v_rcp_f32"),
    lanes<[](float a) { return reciprocal(a); }>("v_rcp_iflag_f32"),
    lanes<[](float a) { return reciprocal_root(a); }>("v_rsq_f32"),
    lanes<[](float a) { return __builtin_sqrtf(flat(a)); }>("v_sqrt_f32"),
    lanes<[](float a) { return sine(a); }>("v_sin_f32"),
    lanes<[](float a) { return cosine(a); }>("v_cos_f32"),
    lanes<[](double a) { return 1.0 / a; }>("v_rcp_f64"),
    lanes<[](double a) { return 1.0 / __builtin_sqrt(a); }>("v_rsq_f64"),
    lanes<[](double a) { return __builtin_sqrt(a); }>("v_sqrt_f64"),
    lanes<[](Half a) { return Half{1.0F / a.value}; }>("v_rcp_f16"),
    lanes<[](Half a) { return Half{__builtin_sqrtf(a.value)}; }>("v_sqrt_f16"),
    lanes<[](Half a) { return Precise{1.0 / __builtin_sqrt(static_cast<double>(a.value))}; }>("v_rsq_f16"),
    lanes<[](Half a) { return Half{__builtin_log2f(a.value)}; }>("v_log_f16"),
    lanes<[](Half a) { return Half{__builtin_exp2f(a.value)}; }>("v_exp_f16"),
    lanes<[](Half a) { return Half{sine(a.value)}; }>("v_sin_f16"),
    lanes<[](Half a) { return Half{cosine(a.value)}; }>("v_cos_f16"),

    lanes<[](float a) { return has_exponent(a) ? exponent_of(static_cast<double>(a)) : 0; }>("v_frexp_exp_i32_f32"),
    lanes<[](float a) { return has_exponent(a) ? static_cast<float>(mantissa_of(static_cast<double>(a))) : a; }>(
        "v_frexp_mant_f32"),
    lanes<[](double a) { return has_exponent(a) ? exponent_of(a) : 0; }>("v_frexp_exp_i32_f64"),
    lanes<[](double a) { return has_exponent(a) ? mantissa_of(a) : a; }>("v_frexp_mant_f64"),
    lanes<[](Half a) -> std::int16_t {
      return has_exponent(a.value) ? static_cast<std::int16_t>(exponent_of(static_cast<double>(a.value)))
                                   : std::int16_t{0};
    }>("v_frexp_exp_i16_f16"),
    lanes<[](Half a) {
      return has_exponent(a.value) ? Half{static_cast<float>(mantissa_of(static_cast<double>(a.value)))} : a;
    }>("v_frexp_mant_f16"),

    lanes<[](Word a) { return ~a; }>("v_not_b32"),
    lanes<[](std::uint16_t a) { return static_cast<std::uint16_t>(~a); }>("v_not_b16"),
    lanes<[](Word a) { return reversed(a); }>("v_bfrev_b32"),
    lanes<[](Word a) { return a == 0 ? ~0U : static_cast<Word>(__builtin_clz(a)); }>("v_clz_i32_u32"),
    lanes<[](Word a) { return a == 0 ? ~0U : static_cast<Word>(__builtin_ctz(a)); }>("v_ctz_i32_b32"),
    lanes<[](Word a) {  // position of the first bit that differs from the sign; none: -1
      const Word differing = static_cast<std::int32_t>(a) < 0 ? ~a : a;
      return differing == 0 ? ~0U : static_cast<Word>(__builtin_clz(differing));
    }>("v_cls_i32"),
};

}  // namespace

SemanticsList vop1() noexcept { return list_of(vop1_entries); }

// Conversions of VOP1 and VOP3.

namespace {

// Towards zero; what does not fit becomes the nearest that does, NaN becomes 0.
KILN_LANE std::int32_t to_int(float x) {
  const std::int32_t inside = static_cast<std::int32_t>(x > -2147483648.0F && x < 2147483648.0F ? x : 0.0F);
  return x >= 2147483648.0F ? 0x7FFFFFFF : x <= -2147483648.0F ? -0x7FFFFFFF - 1 : inside;
}
KILN_LANE Word to_word(float x) {
  const bool upper = x >= 2147483648.0F;
  const float lowered = upper ? x - 2147483648.0F : x;
  const Word inside =
      static_cast<Word>(static_cast<std::int32_t>(lowered > 0.0F && x < 4294967296.0F ? lowered : 0.0F)) +
      (upper ? 0x80000000U : 0U);
  return x >= 4294967296.0F ? 0xFFFFFFFFU : inside;
}
KILN_LANE std::int32_t to_int(double x) {
  const std::int32_t inside = static_cast<std::int32_t>(x > -2147483649.0 && x < 2147483648.0 ? x : 0.0);
  return x >= 2147483648.0 ? 0x7FFFFFFF : x <= -2147483649.0 ? -0x7FFFFFFF - 1 : inside;
}
KILN_LANE Word to_word(double x) {
  const Wide inside = static_cast<Wide>(static_cast<std::int64_t>(x > 0.0 && x < 4294967296.0 ? x : 0.0));
  return x >= 4294967296.0 ? 0xFFFFFFFFU : static_cast<Word>(inside);
}
KILN_LANE std::int32_t limited(std::int32_t x, std::int32_t low, std::int32_t high) {
  return x < low ? low : x > high ? high : x;
}
KILN_LANE Word pair(Word low, Word high) { return (low & 0xFFFFU) | high << 16U; }

// [-1, 1] and [0, 1] to the whole range of the integer.
KILN_LANE std::int32_t normal_signed(float x) {
  const float inside = x > 1.0F ? 1.0F : x < -1.0F ? -1.0F : x;
  return to_int(nearest_even(inside * 32767.0F));
}
KILN_LANE std::int32_t normal_unsigned(float x) {
  const float inside = x > 1.0F ? 1.0F : x < 0.0F ? 0.0F : x;
  return to_int(nearest_even(inside * 65535.0F));
}
KILN_LANE Word towards_zero(float x) { return double_to_half_slow(static_cast<double>(x), 3, false); }

constexpr Semantics conversions_entries[] = {
    lanes<[](std::int32_t a) { return static_cast<float>(a); }>("v_cvt_f32_i32"),
    lanes<[](Word a) { return static_cast<float>(a); }>("v_cvt_f32_u32"),
    lanes<[](float a) { return to_word(a); }>("v_cvt_u32_f32"),
    lanes<[](float a) { return to_int(a); }>("v_cvt_i32_f32"),
    lanes<[](float a) { return to_int(__builtin_floorf(a + 0.5F)); }>("v_cvt_nearest_i32_f32"),
    lanes<[](float a) { return to_int(__builtin_floorf(a)); }>("v_cvt_floor_i32_f32"),
    lanes<[](double a) { return to_int(a); }>("v_cvt_i32_f64"),
    lanes<[](double a) { return to_word(a); }>("v_cvt_u32_f64"),
    lanes<[](std::int32_t a) { return static_cast<double>(a); }>("v_cvt_f64_i32"),
    lanes<[](Word a) { return static_cast<double>(a); }>("v_cvt_f64_u32"),
    lanes<[](double a) { return static_cast<float>(a); }>("v_cvt_f32_f64"),
    lanes<[](float a) { return static_cast<double>(a); }>("v_cvt_f64_f32"),
    lanes<[](float a) { return Half{a}; }>("v_cvt_f16_f32"),
    lanes<[](Half a) { return a.value; }>("v_cvt_f32_f16"),
    lanes<[](std::uint16_t a) { return Half{static_cast<float>(a)}; }>("v_cvt_f16_u16"),
    lanes<[](std::int16_t a) { return Half{static_cast<float>(a)}; }>("v_cvt_f16_i16"),
    lanes<[](Half a) { return static_cast<std::uint16_t>(limited(to_int(a.value), 0, 0xFFFF)); }>("v_cvt_u16_f16"),
    lanes<[](Half a) { return static_cast<std::int16_t>(limited(to_int(a.value), -0x8000, 0x7FFF)); }>("v_cvt_i16_f16"),
    lanes<[](std::int16_t a) { return static_cast<std::int32_t>(a); }>("v_cvt_i32_i16"),
    lanes<[](std::uint16_t a) { return static_cast<Word>(a); }>("v_cvt_u32_u16"),
    lanes<[](Word a) { return static_cast<float>(static_cast<std::int32_t>(a << 28U) >> 28) * 0.0625F; }>(
        "v_cvt_off_f32_i4"),
    lanes<[](Word a) { return static_cast<float>(static_cast<std::int32_t>(a & 0xFFU)); }>("v_cvt_f32_ubyte0"),
    lanes<[](Word a) { return static_cast<float>(static_cast<std::int32_t>(a >> 8U & 0xFFU)); }>("v_cvt_f32_ubyte1"),
    lanes<[](Word a) { return static_cast<float>(static_cast<std::int32_t>(a >> 16U & 0xFFU)); }>("v_cvt_f32_ubyte2"),
    lanes<[](Word a) { return static_cast<float>(static_cast<std::int32_t>(a >> 24U)); }>("v_cvt_f32_ubyte3"),
    lanes<[](Half a) { return static_cast<std::int16_t>(normal_signed(a.value)); }>("v_cvt_norm_i16_f16"),
    lanes<[](Half a) { return static_cast<std::uint16_t>(normal_unsigned(a.value)); }>("v_cvt_norm_u16_f16"),
    lanes<[](Word a) {
      const auto low = static_cast<std::int16_t>(a), high = static_cast<std::int16_t>(a >> 16U);
      return static_cast<std::uint16_t>(limited(low, 0, 255) | limited(high, 0, 255) << 8);
    }>("v_sat_pk_u8_i16"),

    lanes<[](float a, float b) { return pair(towards_zero(a), towards_zero(b)); }>("v_cvt_pk_rtz_f16_f32"),
    lanes<[](float a, float b) {
      return pair(static_cast<Word>(normal_signed(a)), static_cast<Word>(normal_signed(b)));
    }>("v_cvt_pk_norm_i16_f32"),
    lanes<[](float a, float b) {
      return pair(static_cast<Word>(normal_unsigned(a)), static_cast<Word>(normal_unsigned(b)));
    }>("v_cvt_pk_norm_u16_f32"),
    lanes<[](Half a, Half b) {
      return pair(static_cast<Word>(normal_signed(a.value)), static_cast<Word>(normal_signed(b.value)));
    }>("v_cvt_pk_norm_i16_f16"),
    lanes<[](Half a, Half b) {
      return pair(static_cast<Word>(normal_unsigned(a.value)), static_cast<Word>(normal_unsigned(b.value)));
    }>("v_cvt_pk_norm_u16_f16"),
    lanes<[](float a, float b) {
      return pair(static_cast<Word>(limited(to_int(a), -0x8000, 0x7FFF)),
                  static_cast<Word>(limited(to_int(b), -0x8000, 0x7FFF)));
    }>("v_cvt_pk_i16_f32"),
    lanes<[](float a, float b) {
      return pair(static_cast<Word>(limited(to_int(a), 0, 0xFFFF)), static_cast<Word>(limited(to_int(b), 0, 0xFFFF)));
    }>("v_cvt_pk_u16_f32"),
    lanes<[](Word a, Word b) { return pair(a > 0xFFFFU ? 0xFFFFU : a, b > 0xFFFFU ? 0xFFFFU : b); }>(
        "v_cvt_pk_u16_u32"),
    lanes<[](std::int32_t a, std::int32_t b) {
      return pair(static_cast<Word>(limited(a, -0x8000, 0x7FFF)), static_cast<Word>(limited(b, -0x8000, 0x7FFF)));
    }>("v_cvt_pk_i16_i32"),
    lanes<[](float a, Word b, Word c) {
      const unsigned shift = 8U * (b & 3U);
      const Word byte = static_cast<Word>(limited(to_int(nearest_even(a)), 0, 255));
      return (c & ~(0xFFU << shift)) | byte << shift;
    }>("v_cvt_pk_u8_f32"),
};

}  // namespace

SemanticsList conversions() noexcept { return list_of(conversions_entries); }

}  // namespace kiln::simulator::KILN_VECTOR_BUILD
