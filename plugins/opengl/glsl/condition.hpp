// The value of an #if condition.
//
// Thread-safety: a pure function. Ownership: nothing is retained.
#pragma once

#include <cstdint>

#include "glsl/tokens.hpp"

namespace kiln::opengl::glsl {

// Macros and `defined` are expanded already; a name that is left counts 0. What is no valid expression is 0: the
// compiler reports it.
std::int64_t value_of_condition(Tokens expression);

}  // namespace kiln::opengl::glsl
