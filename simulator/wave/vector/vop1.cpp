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

constexpr Semantics entries[] = {
    {"v_clrexcp", &nothing, takes::nothing, 0},  // exceptions are not kept
    {"v_nop", &nothing, takes::nothing, 0},
    {"v_pipeflush", &nothing, takes::nothing, 0},
    lanes<[](Word a) { return a; }>("v_mov_b32"),
    lanes<[](std::uint16_t a) { return a; }>("v_mov_b16"),
    lanes<[](float a) { return __builtin_truncf(a); }>("v_trunc_f32"),
    lanes<[](float a) { return __builtin_ceilf(a); }>("v_ceil_f32"),
    lanes<[](float a) { return __builtin_roundevenf(a); }>("v_rndne_f32"),
    lanes<[](float a) { return __builtin_floorf(a); }>("v_floor_f32"),
    lanes<[](float a) { return fraction(a); }>("v_fract_f32"),
    lanes<[](double a) { return __builtin_trunc(a); }>("v_trunc_f64"),
    lanes<[](double a) { return __builtin_ceil(a); }>("v_ceil_f64"),
    lanes<[](double a) { return __builtin_roundeven(a); }>("v_rndne_f64"),
    lanes<[](double a) { return __builtin_floor(a); }>("v_floor_f64"),
    lanes<[](double a) { return fraction(a); }>("v_fract_f64"),
    lanes<[](Half a) { return Half{__builtin_truncf(a.value)}; }>("v_trunc_f16"),
    lanes<[](Half a) { return Half{__builtin_ceilf(a.value)}; }>("v_ceil_f16"),
    lanes<[](Half a) { return Half{__builtin_roundevenf(a.value)}; }>("v_rndne_f16"),
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

SemanticsList vop1() noexcept { return list_of(entries); }

}  // namespace kiln::simulator::KILN_VECTOR_BUILD
