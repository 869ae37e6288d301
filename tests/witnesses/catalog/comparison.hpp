// Comparison: when two answers to one shader count as the same, and where they first do not.
//
// Its text in a shader's header is a list of: `exact` (the same bits, or both NaN), `value` (also zeros of two signs),
// `flush` (also a denormal for a zero), `ulp=N`, `abs=X`, `half=N` (a word of two halves, N steps apart each), `off=N`
// (whole numbers N apart), `none` (not compared). One that holds is enough.
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include "witnesses/catalog/scalar.hpp"

#include <span>

namespace kiln::witness {

struct Comparison {
  bool none = false;
  bool zeros_equal = false;
  bool flush = false;
  double ulps = 0;
  double absolute = 0;
  std::int64_t half_steps = 0;
  std::int64_t off = 0;
};

// Throws std::runtime_error naming the word that is none of these.
Comparison parse_comparison(std::string_view text);

struct Difference {
  std::size_t count = 0;
  std::size_t first = 0;  // the element, counted in scalars
  std::string text;       // what stands there on both sides
};

// Each element of `got` against the same one of any of the alternatives. `slack` widens the tolerances: two answers
// that are each within one of the truth are within twice of each other.
Difference compare(Scalar scalar, const Comparison& how, double slack, const Bytes& got,
                   std::span<const Bytes> alternatives);

}  // namespace kiln::witness
