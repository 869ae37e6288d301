// Float formats: where their bits lie, and what AMD's rules say of NaN and of denormals in each.
//
// Compiled once for each instruction set that the library chooses from: all names of this folder's headers stand in the
// namespace that KILN_VECTOR_BUILD names and have internal linkage, so that no copy made for one processor can serve
// another. Everything that lanes run through is free of branches. Thread-safety and ownership: pure functions.
#pragma once

#include <cstdint>

#define KILN_LANE [[gnu::always_inline, maybe_unused]] inline

namespace kiln::simulator::KILN_VECTOR_BUILD {
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
}  // namespace kiln::simulator::KILN_VECTOR_BUILD
