// ValueRule: what a key accepts; and values as text, for messages and for `kiln config show`.
//
// Thread-safety: pure functions. Ownership: a rule borrows its words.
#pragma once

#include <kiln/config.hpp>
#include <kiln/status.hpp>

#include "config/toml_document.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace kiln::config {

// size and duration are text (or, for a size, an integer) in a file and std::int64_t (bytes, nanoseconds) once checked.
// path and path_list are texts whose "~" and base folder the reader resolves.
enum class ValueKind : std::uint8_t {
  invalid = 0,
  boolean,
  integer,
  number,
  text,
  text_list,
  size,
  duration,
  path,
  path_list,
};

struct ValueRule {
  ValueKind kind = ValueKind::invalid;
  double least = -std::numeric_limits<double>::infinity();  // of integer, number, size and duration
  double most = std::numeric_limits<double>::infinity();
  std::span<const std::string_view> allowed = {};  // of text; empty: anything
  bool may_be_empty = false;                       // of text
  std::span<const std::string_view> removed = {};  // of text: words of earlier versions, read as `successor`
  std::string_view successor = {};                 // one of `allowed`
};

inline constexpr ValueRule boolean_value{ValueKind::boolean};
inline constexpr ValueRule text_value{ValueKind::text};
constexpr ValueRule word_of(std::span<const std::string_view> allowed) {
  ValueRule rule{ValueKind::text};
  rule.allowed = allowed;
  return rule;
}

ValueRule rule_of(const ConfigKey& key, std::span<const std::string_view> allowed) noexcept;

// "an integer from 1 to 16", "one of ema, epsilon"
std::string expected_text(const ValueRule& rule);

// The value as its key's type, or "found …, expected …".
Result<ConfigValue> checked(ConfigValue value, const ValueRule& rule);
Result<ConfigValue> checked(const TomlNode& node, const ValueRule& rule);

// nullopt where the node is none of ConfigValue's types (a table, a date, an array of anything but texts).
std::optional<ConfigValue> plain_value(const TomlNode& node);

// "the text "abc"", "the integer 3", "a table": what stands in a file, for messages. Long texts are cut.
std::string describe(const TomlNode& node);

// In TOML's syntax, on one line: true, 3, 2.5, "abc", ["a", "b"].
std::string print(const ConfigValue& value);
// The same, with sizes and durations in their units.
std::string print(const ConfigValue& value, const ValueRule& rule);

}  // namespace kiln::config
