// Numbers of vector instructions: bit casts, f16 in both directions, and AMD's rules for NaN, minimum and maximum.
// Everything here is branch-free where lanes run through it.
//
// Compiled once for each instruction set that the library chooses from: all names stand in the namespace that
// KILN_VECTOR_BUILD names and have internal linkage, so that no copy made for one processor can serve another.
// Thread-safety and ownership: pure functions.
#pragma once

#include <cstdint>

namespace kiln::simulator::KILN_VECTOR_BUILD {
namespace {

using Word = std::uint32_t;
using Wide = std::uint64_t;

#define KILN_LANE [[gnu::always_inline, maybe_unused]] inline

KILN_LANE float as_float(Word bits) { return __builtin_bit_cast(float, bits); }
KILN_LANE Word as_bits(float value) { return __builtin_bit_cast(Word, value); }
KILN_LANE double as_double(Wide bits) { return __builtin_bit_cast(double, bits); }
KILN_LANE Wide as_bits(double value) { return __builtin_bit_cast(Wide, value); }

// What an invalid operation answers.
constexpr Word default_nan = 0xFFC00000U;
constexpr Wide default_nan_wide = 0xFFF8000000000000U;
constexpr Word default_nan_half = 0xFE00U;

KILN_LANE bool is_nan(Word bits) { return (bits & 0x7FFFFFFFU) > 0x7F800000U; }
KILN_LANE bool is_nan(Wide bits) { return (bits & 0x7FFFFFFFFFFFFFFFU) > 0x7FF0000000000000U; }
KILN_LANE bool is_nan_half(Word bits) { return (bits & 0x7FFFU) > 0x7C00U; }
KILN_LANE Word quiet(Word bits) { return bits | 0x00400000U; }
KILN_LANE Wide quiet(Wide bits) { return bits | 0x0008000000000000U; }
KILN_LANE bool is_signalling(Word bits) { return is_nan(bits) && (bits & 0x00400000U) == 0; }
KILN_LANE bool is_signalling(Wide bits) { return is_nan(bits) && (bits & 0x0008000000000000U) == 0; }
KILN_LANE Word flushed(Word bits) { return (bits & 0x7F800000U) == 0 ? bits & 0x80000000U : bits; }
KILN_LANE Wide flushed(Wide bits) {
  return (bits & 0x7FF0000000000000U) == 0 ? bits & 0x8000000000000000U : bits;
}
KILN_LANE Word flushed_half(Word bits) { return (bits & 0x7C00U) == 0 ? bits & 0x8000U : bits; }

// Exact. A denormal becomes a normal float by one subtraction that has no rounding; its sign is put back afterwards, for
// x - x is -0 where MODE rounds down.
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
  const int lowest = exponent < -14 ? -24 : exponent - 10;    // weight of the result's last bit
  const int shift = lowest - (exponent - 52);                 // how many bits of the fraction go
  const Wide kept = shift > 63 ? 0 : fraction >> shift;
  const Wide lost = shift > 63 ? fraction : fraction & ((Wide{1} << shift) - 1);
  const Wide tie = shift > 63 ? ~Wide{0} : Wide{1} << (shift - 1);
  Wide result = exponent < -14 ? kept : kept + (static_cast<Wide>(exponent + 14) << 10U);
  if (rounding == 0 ? lost > tie || (lost == tie && (kept & 1U) != 0) : up && lost != 0) ++result;
  if (result >= 0x7C00U && saturate) result = 0x7BFFU;
  return sign | static_cast<Word>(result);
}

// Smaller and greater: -0 is below +0, a number wins over a NaN, and under IEEE a signalling NaN comes out quiet.
KILN_LANE Word minimum(Word a, Word b, bool ieee) {
  const float x = as_float(a), y = as_float(b);
  Word result = x < y ? a : b;
  result = x == y ? a | b : result;
  result = is_nan(b) ? a : result;
  result = is_nan(a) ? b : result;
  result = is_signalling(b) && ieee ? quiet(b) : result;
  return is_signalling(a) && ieee ? quiet(a) : result;
}
KILN_LANE Word maximum(Word a, Word b, bool ieee) {
  const float x = as_float(a), y = as_float(b);
  Word result = x > y ? a : b;
  result = x == y ? a & b : result;
  result = is_nan(b) ? a : result;
  result = is_nan(a) ? b : result;
  result = is_signalling(b) && ieee ? quiet(b) : result;
  return is_signalling(a) && ieee ? quiet(a) : result;
}
KILN_LANE Wide minimum(Wide a, Wide b, bool ieee) {
  const double x = as_double(a), y = as_double(b);
  Wide result = x < y ? a : b;
  result = x == y ? a | b : result;
  result = is_nan(b) ? a : result;
  result = is_nan(a) ? b : result;
  result = is_signalling(b) && ieee ? quiet(b) : result;
  return is_signalling(a) && ieee ? quiet(a) : result;
}
KILN_LANE Wide maximum(Wide a, Wide b, bool ieee) {
  const double x = as_double(a), y = as_double(b);
  Wide result = x > y ? a : b;
  result = x == y ? a & b : result;
  result = is_nan(b) ? a : result;
  result = is_nan(a) ? b : result;
  result = is_signalling(b) && ieee ? quiet(b) : result;
  return is_signalling(a) && ieee ? quiet(a) : result;
}
// The same for the bits of f16, by an order of integers in which -0 is below +0.
KILN_LANE std::int32_t order_of_half(Word bits) {
  return (bits & 0x8000U) != 0 ? -static_cast<std::int32_t>(bits & 0x7FFFU) - 1 : static_cast<std::int32_t>(bits);
}
KILN_LANE Word number_of_halves(Word chosen, Word a, Word b, bool ieee) {
  Word result = is_nan_half(b) ? a : chosen;
  result = is_nan_half(a) ? b : result;
  result = is_nan_half(b) && (b & 0x200U) == 0 && ieee ? b | 0x200U : result;
  return is_nan_half(a) && (a & 0x200U) == 0 && ieee ? a | 0x200U : result;
}
KILN_LANE Word minimum_half(Word a, Word b, bool ieee) {
  return number_of_halves(order_of_half(a) < order_of_half(b) ? a : b, a, b, ieee);
}
KILN_LANE Word maximum_half(Word a, Word b, bool ieee) {
  return number_of_halves(order_of_half(a) > order_of_half(b) ? a : b, a, b, ieee);
}
KILN_LANE Word median_half(Word a, Word b, Word c, bool ieee) {
  const bool any = is_nan_half(a) || is_nan_half(b) || is_nan_half(c);
  const Word low = minimum_half(minimum_half(a, b, ieee), c, ieee);
  const Word upper = minimum_half(maximum_half(a, b, ieee), c, ieee);
  return any ? low : maximum_half(minimum_half(a, b, ieee), upper, ieee);
}
KILN_LANE Word median(Word a, Word b, Word c, bool ieee) {
  const bool any = is_nan(a) || is_nan(b) || is_nan(c);
  const Word low = minimum(minimum(a, b, ieee), c, ieee);
  const Word middle = maximum(minimum(a, b, ieee), minimum(maximum(a, b, ieee), c, ieee), ieee);
  return any ? low : middle;
}

}  // namespace
}  // namespace kiln::simulator::KILN_VECTOR_BUILD
