// Reads the sections of a configuration but [[job]].
//
// Reads [[cache.remote]]: the remotes of the cache.
//
// Thread-safety: none; as Draft. Ownership: values.
#pragma once

#include "config/reader.hpp"

#include <span>
#include <string_view>

namespace kiln::config {

struct RemoteKeyEntry {
  std::string_view name;
  std::string_view help;     // whole sentences
  std::string_view example;  // in TOML's syntax
};
std::span<const RemoteKeyEntry> remote_key_table() noexcept;

// `remotes` is the value of the key "remote" in [cache].
void read_remotes(Draft& draft, const TomlMember& remotes, const FileContext& file);

// read_sections: what a parsed file says, into a Draft.
//
// Thread-safety: none; one reading, one thread. Ownership: nothing is kept.

void read_sections(Draft& draft, const TomlNode& root, const FileContext& file);

}  // namespace kiln::config
