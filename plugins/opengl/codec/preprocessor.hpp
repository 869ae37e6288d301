// The tokens of a GLSL text as the compiler's parser sees them: without what #if leaves out, macros expanded.
//
// Thread-safety: a pure function. Ownership: the tokens borrow from the text, the constants and `pasted`.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/kernel.hpp>

#include "codec/source_text.hpp"

namespace kiln::opengl::glsl {

struct Preprocessed {
  std::vector<Token> tokens;                   // no directives, no ends of lines
  std::vector<std::vector<Token>> extensions;  // what follows each `#extension` that is reached
  std::deque<std::string> pasted;              // what ## makes
};

// constants: #defines in front of the text.
Preprocessed preprocessed(std::string_view text, std::span<const Define> constants);

// The value of an #if condition.
//
// Thread-safety: a pure function. Ownership: nothing is retained.

// Macros and `defined` are expanded already; a name that is left counts 0. What is no valid expression is 0: the
// compiler reports it.
std::int64_t value_of_condition(Tokens expression);

}  // namespace kiln::opengl::glsl
