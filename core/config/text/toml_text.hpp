// Values as TOML's syntax has them, for messages and for what `config show` prints.
//
// Thread-safety: pure functions. Ownership: answers own their text.
#pragma once

#include <string>
#include <string_view>

namespace kiln::config {

// In quotes, with escapes for quotes, backslashes and control characters: always one line.
std::string toml_text(std::string_view text);

// Bare where it can be, else in quotes.
std::string toml_key(std::string_view key);

// Always recognisable as floating point, and read back as the same value: "2.0", "1e+30", "nan".
std::string print_number(double number);

}  // namespace kiln::config
