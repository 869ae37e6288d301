// Sizes ("50 MiB") and durations ("250 ms") as text. Reading them is public (kiln/config_reader.hpp: parse_size,
// parse_duration); this is the printing side and the unit words.
//
// Thread-safety: pure functions. Ownership: answers own their text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kiln::config {

struct Unit {
  std::string_view word;
  std::int64_t worth;  // bytes, or nanoseconds
};

std::span<const Unit> size_units() noexcept;      // least first
std::span<const Unit> duration_units() noexcept;  // least first

// With the largest unit that divides the value: "50 MiB", "10 s". Zero has the least unit.
std::string print_size(std::int64_t bytes);
std::string print_duration(std::int64_t nanoseconds);

}  // namespace kiln::config
