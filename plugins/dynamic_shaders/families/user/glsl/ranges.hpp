// An interval that a value of a user's kernel lies in, and what GLSL's operators and functions make of it.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <limits>
#include <span>
#include <string_view>

namespace kiln::dynamic_shaders {

struct Range {  // nothing is known of the one that has no ends
  double lo = -std::numeric_limits<double>::infinity();
  double hi = std::numeric_limits<double>::infinity();
  bool whole = false;  // of int or uint

  bool is_one_value() const noexcept { return lo == hi; }
  bool is_true() const noexcept { return lo > 0 || hi < 0; }  // certainly, and so is_false(); neither: it may be both
  bool is_false() const noexcept { return lo == 0 && hi == 0; }
};

Range exactly(double value, bool whole = true) noexcept;
Range negated(Range range) noexcept;

Range applied(std::string_view sign, Range of) noexcept;  // - + ! ~
Range applied(std::string_view sign, Range a, Range b) noexcept;
Range chosen(Range condition, Range yes, Range no) noexcept;
// What a function of the language answers; of one that is not known here, nothing.
Range called(std::string_view function, std::span<const Range> given) noexcept;

// As a variable of the type `type` holds it: int and uint drop what is behind the point, and a uint wraps around.
Range held_by(std::string_view type, Range range) noexcept;

}  // namespace kiln::dynamic_shaders
