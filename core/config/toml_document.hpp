// TomlNode: what a TOML text holds, as plain values with the place of every key and value.
//
// Thread-safety: values; parse_toml may be called from any thread. Ownership: a node owns everything below it.
// The parser's library is seen by toml_document.cpp alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kiln::config {

struct TextPosition {  // both from 1
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  auto operator<=>(const TextPosition&) const = default;
};

enum class TomlKind : std::uint8_t { invalid = 0, boolean, integer, number, text, moment, array, table };

struct TomlMember;

struct TomlNode {
  TomlKind kind = TomlKind::invalid;
  TextPosition at;
  bool boolean = false;
  std::int64_t integer = 0;
  double number = 0;
  std::string text;                 // of a text; of a moment (date or time), as it was written
  std::vector<TomlNode> items;      // of an array
  std::vector<TomlMember> members;  // of a table, in the order of their places
};

struct TomlMember {
  std::string key;
  TextPosition at;  // of the key
  TomlNode value;
};

struct TomlFailure {
  TextPosition at;
  std::string message;
};

// What unsafe_toml() refuses, and arrays or inline tables more than 32 deep, are failures: the tree is walked by
// recursion.
std::variant<TomlNode, TomlFailure> parse_toml(std::string_view text);

// What is looked at before the TOML library is: a dotted key of many parts becomes a chain of tables of that depth, and
// all that walks tables is recursive.
// Thread-safety: pure functions. Ownership: values.

inline constexpr std::uint32_t most_key_parts = 16;

// The first place that must not reach the library. What is not valid TOML for other reasons is left for it to judge.
std::optional<TomlFailure> unsafe_toml(std::string_view text);

}  // namespace kiln::config
