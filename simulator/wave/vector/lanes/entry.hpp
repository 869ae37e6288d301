// The entry of the semantics table for the arithmetic of one lane (a lambda): its handlers, and the modifiers that its
// operand types take.
//
// Compiled once for each instruction set, see formats.hpp. Thread-safety and ownership: constants.
#pragma once

#include "simulator/wave/vector/lanes/quick.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {
namespace {

template <auto Body>
constexpr Semantics lanes(const char* name, std::uint8_t more = 0) {
  using Result = ResultOf<Body>;
  using T0 = Argument<Body, 0>;
  using T1 = Argument<Body, 1>;
  std::uint8_t modifiers = more;
  if (is_float_type<T0> || is_float_type<T1>) modifiers |= takes::float_sources;
  if (is_float_type<Result>) modifiers |= takes::float_result;
  // A comparison's clamp only asks for exceptions, and there are none.
  if (__is_same(Result, bool) && is_float_type<T0>) modifiers |= takes::saturation;
  if (is_half_register<T0> || is_half_register<T1> || is_half_register<Result> || has_mode_of_16_64<Result>) {
    modifiers |= takes::halves;
  }
  Semantics result{name, &vector<Body>, modifiers, 0};
  if constexpr (has_quick<Body>) {
    result.quick = &quick<Body, false>;
    result.quick_scalar = &quick<Body, true>;
  }
  return result;
}

template <unsigned N>
constexpr SemanticsList list_of(const Semantics (&entries)[N]) {
  return {entries, N};
}

}  // namespace
}  // namespace kiln::simulator::KILN_VECTOR_BUILD
