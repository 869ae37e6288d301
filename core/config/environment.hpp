// What a configuration takes from the environment: the default folders, and what "~" stands for.
//
// Thread-safety: pure functions; those of kiln/config.hpp that read the environment of the process must not run while
// another thread changes it. Ownership: values.
#pragma once

#include <kiln/status.hpp>

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/reader.hpp"

namespace kiln::config {

using Environment = std::map<std::string, std::string>;

struct DefaultPath {
  std::string_view variable;    // of XDG
  std::string_view below_home;  // where that is not set
  std::string_view leaf;        // in the folder "kiln" there; empty: that folder itself
};

inline constexpr DefaultPath cache_place{"XDG_CACHE_HOME", ".cache", ""};
inline constexpr DefaultPath key_place{"XDG_STATE_HOME", ".local/state", "key"};
inline constexpr DefaultPath trust_place{"XDG_CONFIG_HOME", ".config", ""};

// /etc/kiln, then the user's folder if the environment names one.
std::vector<std::filesystem::path> trust_folders(const Environment& set);

// Without empty values, and without a HOME or XDG folder that is relative: such a one counts as not set.
Environment set_variables(const Environment& all);

// Empty: neither the XDG variable nor HOME is set.
std::string default_path(const Environment& set, const DefaultPath& place);

// "~" and "~/…" by HOME; then absolute, from `base`. not_found: there is no HOME for "~".
Result<std::string> expanded_path(const std::string& text, const Environment& set, const std::filesystem::path& base);

// What stands above the file: environment variables, then --set and the options that name a key.
//
// Thread-safety: none; one reading, one thread. Ownership: nothing is kept.

// KILN_CACHE_DIR, KILN_PLUGIN_PATH, KILN_KEY_FILE, KILN_LOG, from draft.environment.
void apply_environment(Draft& draft);

// Each --set in order, then --cache-dir, --plugin-path and --log.
void apply_command_line(Draft& draft, const ConfigSources& sources);

}  // namespace kiln::config
