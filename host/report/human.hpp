// Sizes and times as a person reads them; foreign text is made visible() (base/visible_text.hpp).
//
// Thread-safety: pure. Ownership: values.
#pragma once

#include "base/visible_text.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace kiln::host {

std::string human_size(std::uint64_t bytes);  // "812 B", "4.2 KiB", "1.3 GiB"
// "3 h ago"; "–" for 0, which stands for "not known".
std::string human_age(std::int64_t seconds_since_1970, std::int64_t now);
std::string human_date(std::int64_t seconds_since_1970);  // "2026-03-01 12:30", local time
constexpr double to_ms(double ns) { return ns / 1e6; }
std::string human_ms(double ms);  // "12.3 ms", "4.5 s", "3.2 h"

// "1 program", "2 programs".
std::string counted(std::uint64_t count, std::string_view what);

}  // namespace kiln::host
