// The tokens of a user's GLSL kernel as its compiler's parser sees them: without what #if leaves out, macros put in.
// `##` is not understood: no name of a loop was met that needs it.
//
// Thread-safety: a pure function. Ownership: the tokens borrow from the text and from the constants.
#pragma once

#include <kiln/kernel.hpp>

#include <span>
#include <string_view>
#include <vector>

#include "dynamic_shaders/families/user/glsl/tokens.hpp"

namespace kiln::dynamic_shaders {

// constants: #defines that stand before the text.
std::vector<Token> preprocessed(std::string_view text, std::span<const Define> constants);

}  // namespace kiln::dynamic_shaders
