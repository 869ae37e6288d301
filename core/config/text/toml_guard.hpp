// What is looked at before the TOML library is: a dotted key of many parts becomes a chain of tables of that depth, and
// all that walks tables is recursive.
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include "config/text/toml_document.hpp"

#include <optional>
#include <string_view>

namespace kiln::config {

inline constexpr std::uint32_t most_key_parts = 16;

// The first place that must not reach the library. What is not valid TOML for other reasons is left for it to judge.
std::optional<TomlFailure> unsafe_toml(std::string_view text);

}  // namespace kiln::config
