// How often the head of a for loop goes round, where that has a bound before it runs.
//
// Thread-safety: a pure function. Ownership: values; names borrow from the tokens.
#pragma once

#include <optional>
#include <string_view>

#include "dynamic_shaders/families/user/glsl/expressions.hpp"
#include "dynamic_shaders/families/user/glsl/tokens.hpp"

namespace kiln::dynamic_shaders {

struct Course {
  double times = 0;  // at the most, as long as the loop's body changes neither `variable` nor `base`
  std::string_view variable;
  Range inside;           // of `variable`, in the body
  std::string_view base;  // a variable that it goes on from, where that takes no part in `times`; empty: none
};

// From whichever part of the condition ends the loop first; absent: none of them is known to.
std::optional<Course> course_of(Tokens init, Tokens condition, Tokens step, NamesInSight names);

}  // namespace kiln::dynamic_shaders
