// What a user's GLSL kernel declares, as far as it tells of values: its variables, and what the language adds to them.
//
// Thread-safety: pure functions. Ownership: values, which borrow their names from the tokens.
#pragma once

#include <kiln/kernel.hpp>

#include <set>
#include <span>
#include <string_view>

#include "dynamic_shaders/families/user/glsl/expressions.hpp"
#include "dynamic_shaders/families/user/glsl/tokens.hpp"

namespace kiln::dynamic_shaders {

// Adds the variables that a statement declares, if it does; of the value of one in `changed` nothing is said.
void declare(Tokens statement, NamesInSight names, const std::set<std::string_view>& changed, Values& values);

// What is known outside of functions: constants, the grid, the workgroup and, of a buffer that ends in an array, how
// long that can be.
Values globals_of(std::span<const Tokens> declarations, const std::set<std::string_view>& changed,
                  const UserKernelSpec& spec);

}  // namespace kiln::dynamic_shaders
