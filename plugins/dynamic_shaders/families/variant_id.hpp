// Reading the ids of variants: "family:name=7,other=12".
//
// Thread-safety: pure functions.
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>

namespace kiln::dynamic_shaders {

// Takes `name` and the number behind it off the front; false: the text begins otherwise.
inline bool take_number(std::string_view& text, std::string_view name, std::int64_t& to) {
  if (!text.starts_with(name)) return false;
  text.remove_prefix(name.size());
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

}  // namespace kiln::dynamic_shaders
