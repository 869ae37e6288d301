// The one table of the keys that stand in the fixed sections: name, rule, meaning, setter and getter. Reader, messages,
// `config show` and configs/default.toml all come from it: a new key is one new row.
//
// Thread-safety: constant data. Ownership: static.
#pragma once

#include <kiln/config.hpp>

#include "config/value_rule.hpp"

#include <span>
#include <string_view>

namespace kiln::config {

// Where a key may be set. outside_file: a file that came from elsewhere shall not say which code is loaded.
enum class KeyPlace : std::uint8_t { invalid = 0, anywhere, outside_file };

struct KeyEntry {
  std::string_view name;  // dotted: "cache.policy"
  ValueRule rule;
  std::string_view help;                                  // whole sentences
  void (*set)(Config& config, const ConfigValue& value);  // REQUIRES: a value that the rule has checked
  ConfigValue (*get)(const Config& config);
  KeyPlace place = KeyPlace::anywhere;
  std::string_view default_text = {};  // in words of TOML, where the default depends on the environment
};

struct SectionEntry {
  std::string_view name;
  std::string_view help;
};

std::span<const KeyEntry> key_table() noexcept;          // sorted by section, in the order of section_table()
std::span<const SectionEntry> section_table() noexcept;  // in the order of the documentation

std::string_view section_of(const KeyEntry& key) noexcept;       // "cache"
std::string_view name_in_section(const KeyEntry& key) noexcept;  // "policy"
const KeyEntry* find_key(std::string_view dotted) noexcept;

// What the value is where nobody set it, in TOML's syntax.
std::string default_of(const KeyEntry& key);

}  // namespace kiln::config
