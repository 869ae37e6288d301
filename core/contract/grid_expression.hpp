// A count of workgroups as a user writes it: integers, names that stand for integers, + - * / % and parentheses.
// Division drops the remainder.
//
// Thread-safety: pure. Ownership: everything is borrowed for the call.
#pragma once

#include <kiln/kernel.hpp>
#include <kiln/status.hpp>

#include <cstdint>
#include <span>
#include <string_view>

namespace kiln {

// invalid_argument in words that fit behind "grid[0] = …: ": what is not understood and where, a name that stands for
// no integer, a division by zero, a number beyond 64 bits.
Result<std::int64_t> value_of(std::string_view expression, std::span<const Define> names);

}  // namespace kiln
