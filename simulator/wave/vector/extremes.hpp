// Smaller, greater and middle of floats by AMD's rules: -0 is below +0, a number wins over a NaN, and under IEEE a
// signalling NaN comes out quiet.
//
// Compiled once for each instruction set, see formats.hpp. Thread-safety and ownership: pure functions.
#pragma once

#include "simulator/wave/vector/formats.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {
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
