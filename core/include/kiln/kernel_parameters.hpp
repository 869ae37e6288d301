// What a user's kernel leaves open: parameters with the texts to try, and a grid that follows from them. A variant
// gives each parameter one of its texts.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <kiln/kernel.hpp>
#include <kiln/status.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

inline constexpr std::size_t most_kernel_variants = 1024;

// "user", or of a kernel with parameters "user:TILE=8,UNROLL=2": every combination, the last parameter changing first.
// The first takes each parameter's first text: it serves until another was measured to be faster, and the others'
// results are compared with its. REQUIRES: check_parameters(kernel).
std::vector<std::string> variants_of(const UserKernelSpec& kernel);

// The kernel of one variant: its parameters are constants, its grid is in numbers. not_found: there is no such variant.
// invalid_argument: its grid is none, with the expression and what it came to.
Result<UserKernelSpec> settled(const UserKernelSpec& kernel, std::string_view variant);

// invalid_argument that names the parameter or the axis: parameters that have no text or one twice, names that are
// taken, more than most_kernel_variants, a grid that is none in one of them.
Status check_parameters(const UserKernelSpec& kernel);

}  // namespace kiln
