// Conversions between f16 and wider numbers, whatever instructions for them the processor has.
//
// Compiled once for each instruction set, see formats.hpp. Thread-safety and ownership: pure functions.
#pragma once

#include "simulator/wave/vector/formats.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {
namespace {

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

}  // namespace
}  // namespace kiln::simulator::KILN_VECTOR_BUILD
