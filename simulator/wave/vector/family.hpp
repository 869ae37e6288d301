// What every vector source of one build shares: table entries, and the tables that the sources provide.
#pragma once

#include "simulator/wave/op.hpp"
#include "simulator/wave/vector/lane_pass.hpp"
#include "simulator/wave/vector/number_formats.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {

// The entry of the semantics table for the arithmetic of one lane (a lambda): its handlers, and the modifiers that its
// operand types take.
//
// Compiled once for each instruction set, see number_formats.hpp. Thread-safety and ownership: constants.

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

// What every vector source of one build shares: the lane machinery, and the tables that the sources offer each other.
//
// Compiled once for each instruction set, see number_formats.hpp.

SemanticsList vop1() noexcept;
SemanticsList conversions() noexcept;
SemanticsList vop2() noexcept;
SemanticsList vop3() noexcept;
SemanticsList vop3_integer() noexcept;
SemanticsList divide() noexcept;
SemanticsList vopc() noexcept;
SemanticsList vop3p() noexcept;
SemanticsList dot() noexcept;
SemanticsList matrix() noexcept;
SemanticsList mix() noexcept;
SemanticsList cross_lane() noexcept;
SemanticsList mask() noexcept;

LaneMemory lane_memory() noexcept;
Next lane_control_begin(Wave& wave, const Op& op);
Next lane_control_end(Wave& wave, const Op& op);
Next lane_control_merge(Wave& wave, const Op& op);
Next sub_word_source(Wave& wave, const Op& op);
Next sub_word_result(Wave& wave, const Op& op);

namespace {
[[maybe_unused]] Next nothing(Wave&, const Op&) { return Next::go; }

// What instructions take that choose a half of each source for each half of their result.
constexpr std::uint8_t packed_words = takes::packed | takes::halves;
constexpr std::uint8_t packed_floats = packed_words | takes::float_sources | takes::float_result;
}  // namespace

}  // namespace kiln::simulator::KILN_VECTOR_BUILD
