// Float formats: their bits, NaN and denormal rules, f16 conversions, minimum and maximum.
#pragma once

#include <cstdint>

#define KILN_LANE [[gnu::always_inline, maybe_unused]] inline

namespace kiln::simulator::KILN_VECTOR_BUILD {

// Float formats: where their bits lie, and what AMD's rules say of NaN and of denormals in each.
//
// Compiled once for each instruction set that the library chooses from: all names of this folder's headers stand in the
// namespace that KILN_VECTOR_BUILD names and have internal linkage, so that no copy made for one processor can serve
// another. Everything that lanes run through is free of branches. Thread-safety and ownership: pure functions.

namespace {

using Word = std::uint32_t;
using Wide = std::uint64_t;

KILN_LANE float as_float(Word bits) { return __builtin_bit_cast(float, bits); }
KILN_LANE Word as_bits(float value) { return __builtin_bit_cast(Word, value); }
KILN_LANE double as_double(Wide bits) { return __builtin_bit_cast(double, bits); }
KILN_LANE Wide as_bits(double value) { return __builtin_bit_cast(Wide, value); }

// `Bits` holds a number in its lowest bits; f16 stands in a Word. f16 and f64 share MODE's fields for rounding and
// denormals, f32 has its own.
struct F16 {
  using Bits = Word;
  static constexpr bool has_mode_of_32 = false;
  static constexpr Bits sign = 0x8000U, infinity = 0x7C00U, quiet_bit = 0x200U;
};
struct F32 {
  using Bits = Word;
  using Float = float;
  static constexpr bool has_mode_of_32 = true;
  static constexpr Bits sign = 0x80000000U, infinity = 0x7F800000U, quiet_bit = 0x00400000U;
};
struct F64 {
  using Bits = Wide;
  using Float = double;
  static constexpr bool has_mode_of_32 = false;
  static constexpr Bits sign = 0x8000000000000000U, infinity = 0x7FF0000000000000U, quiet_bit = 0x0008000000000000U;
};

// What an invalid operation answers.
template <class F>
constexpr typename F::Bits default_nan = F::sign | F::infinity | F::quiet_bit;

template <class F>
KILN_LANE typename F::Bits magnitude(typename F::Bits bits) {
  return bits & (F::sign - 1U);
}
template <class F>
KILN_LANE bool is_nan(typename F::Bits bits) {
  return magnitude<F>(bits) > F::infinity;
}
template <class F>
KILN_LANE typename F::Bits quiet(typename F::Bits nan) {
  return nan | F::quiet_bit;
}
template <class F>
KILN_LANE bool is_signalling(typename F::Bits bits) {
  return is_nan<F>(bits) && (bits & F::quiet_bit) == 0;
}
template <class F>
KILN_LANE typename F::Bits flushed(typename F::Bits bits) {
  return (bits & F::infinity) == 0 ? bits & F::sign : bits;
}

}  // namespace

// Conversions between f16 and wider numbers, whatever instructions for them the processor has.
//
// Compiled once for each instruction set, as said at the top. Thread-safety and ownership: pure functions.

namespace {

// Exact. A denormal becomes a normal float by one subtraction that has no rounding; its sign is put back afterwards,
// for x - x is -0 where MODE rounds down.
KILN_LANE float half_to_float(Word half) {
  const Word magnitude = (half & 0x7FFFU) << 13U;
  const Word sign = (half & 0x8000U) << 16U;
  const Word special = magnitude >= 0x0F800000U ? 0x38000000U : 0U;
  const Word normal = magnitude + 0x38000000U + special;
  const Word denormal = as_bits(as_float(magnitude + 0x38800000U) - as_float(0x38800000U)) & 0x7FFFFFFFU;
  return as_float((magnitude < 0x00800000U ? denormal : normal) | sign);
}

// To nearest, ties to even. REQUIRES: MXCSR rounds to nearest too. NaN keeps the high bits of its payload.
KILN_LANE Word float_to_half(float value) {
  const Word bits = as_bits(value);
  const Word sign = (bits >> 16U) & 0x8000U;
  const Word magnitude = bits & 0x7FFFFFFFU;
  const Word rounded = (magnitude + 0xC8000FFFU + ((magnitude >> 13U) & 1U)) >> 13U;
  const Word denormal = as_bits(as_float(magnitude) + 0.5F) - 0x3F000000U;
  const Word nan = 0x7E00U | ((magnitude >> 13U) & 0x3FFU);
  Word result = magnitude < 0x38800000U ? denormal : rounded;
  result = magnitude >= 0x477FF000U ? 0x7C00U : result;
  result = magnitude > 0x7F800000U ? nan : result;
  return sign | result;
}

// Rounded to odd, so that a second rounding to f16 gives what one rounding would have given.
KILN_LANE float double_to_float_odd(double value) {
  const float nearest = static_cast<float>(value);
  const double back = static_cast<double>(nearest);
  const Word bits = as_bits(nearest);
  const Word away = (as_bits(back) & 0x7FFFFFFFFFFFFFFFU) < (as_bits(value) & 0x7FFFFFFFFFFFFFFFU) ? 1U : 0xFFFFFFFFU;
  const bool inexact = back != value && value == value && (bits & 1U) == 0;
  return as_float(inexact ? bits + away : bits);
}

// Any rounding (0 nearest even, 1 up, 2 down, 3 to zero); overflow gives the largest number where `saturate`.
[[maybe_unused]] Word double_to_half_slow(double value, unsigned rounding, bool saturate) {
  const Wide bits = as_bits(value);
  const Word sign = static_cast<Word>(bits >> 48U) & 0x8000U;
  const Wide magnitude = bits & 0x7FFFFFFFFFFFFFFFU;
  if (magnitude > 0x7FF0000000000000U) return sign | 0x7E00U | (static_cast<Word>(magnitude >> 42U) & 0x3FFU);
  if (magnitude == 0x7FF0000000000000U) return sign | 0x7C00U;
  const int exponent = static_cast<int>(magnitude >> 52U) - 1023;
  const bool up = rounding == 1 ? sign == 0 : rounding == 2 && sign != 0;
  if (exponent > 15) {
    const bool infinite = (rounding == 0 || up) && !saturate;
    return sign | (infinite ? 0x7C00U : 0x7BFFU);
  }
  const Wide fraction = (magnitude & 0xFFFFFFFFFFFFFU) | (magnitude >> 52U != 0 ? Wide{1} << 52U : 0);
  const int lowest = exponent < -14 ? -24 : exponent - 10;  // weight of the result's last bit
  const int shift = lowest - (exponent - 52);               // how many bits of the fraction go
  const Wide kept = shift > 63 ? 0 : fraction >> shift;
  const Wide lost = shift > 63 ? fraction : fraction & ((Wide{1} << shift) - 1);
  const Wide tie = shift > 63 ? ~Wide{0} : Wide{1} << (shift - 1);
  Wide result = exponent < -14 ? kept : kept + (static_cast<Wide>(exponent + 14) << 10U);
  if (rounding == 0 ? lost > tie || (lost == tie && (kept & 1U) != 0) : up && lost != 0) ++result;
  if (result >= 0x7C00U && saturate) result = 0x7BFFU;
  return sign | static_cast<Word>(result);
}

}  // namespace

// Smaller, greater and middle of floats by AMD's rules: -0 is below +0, a number wins over a NaN, and under IEEE a
// signalling NaN comes out quiet.
//
// Compiled once for each instruction set, as said at the top. Thread-safety and ownership: pure functions.

namespace {

// `chosen`, unless one of the two is no number.
template <class F>
KILN_LANE typename F::Bits number_of(typename F::Bits chosen, typename F::Bits a, typename F::Bits b, bool ieee) {
  typename F::Bits result = is_nan<F>(b) ? a : chosen;
  result = is_nan<F>(a) ? b : result;
  result = is_signalling<F>(b) && ieee ? quiet<F>(b) : result;
  return is_signalling<F>(a) && ieee ? quiet<F>(a) : result;
}

// An order of integers for the bits of f16, in which -0 is below +0.
KILN_LANE std::int32_t order_of_half(Word bits) {
  const std::int32_t size = static_cast<std::int32_t>(magnitude<F16>(bits));
  return (bits & F16::sign) != 0 ? -size - 1 : size;
}

template <class F>
KILN_LANE typename F::Bits minimum(typename F::Bits a, typename F::Bits b, bool ieee) {
  if constexpr (__is_same(F, F16)) {
    return number_of<F>(order_of_half(a) < order_of_half(b) ? a : b, a, b, ieee);
  } else {
    const auto x = __builtin_bit_cast(typename F::Float, a), y = __builtin_bit_cast(typename F::Float, b);
    return number_of<F>(x == y ? a | b : x < y ? a : b, a, b, ieee);
  }
}
template <class F>
KILN_LANE typename F::Bits maximum(typename F::Bits a, typename F::Bits b, bool ieee) {
  if constexpr (__is_same(F, F16)) {
    return number_of<F>(order_of_half(a) > order_of_half(b) ? a : b, a, b, ieee);
  } else {
    const auto x = __builtin_bit_cast(typename F::Float, a), y = __builtin_bit_cast(typename F::Float, b);
    return number_of<F>(x == y ? a & b : x > y ? a : b, a, b, ieee);
  }
}
template <class F>
KILN_LANE typename F::Bits median(typename F::Bits a, typename F::Bits b, typename F::Bits c, bool ieee) {
  const bool any = is_nan<F>(a) || is_nan<F>(b) || is_nan<F>(c);
  const auto low = minimum<F>(minimum<F>(a, b, ieee), c, ieee);
  const auto upper = minimum<F>(maximum<F>(a, b, ieee), c, ieee);
  return any ? low : maximum<F>(minimum<F>(a, b, ieee), upper, ieee);
}

}  // namespace

}  // namespace kiln::simulator::KILN_VECTOR_BUILD
