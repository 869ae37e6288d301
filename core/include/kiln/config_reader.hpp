// Reading a configuration: TOML file, environment and command line into a typed Config, every problem told at once.
//
// Thread-safety: pure functions of their arguments and of the files they name; any thread. Ownership: values.
// The environment is that of the process unless the caller passes another one.
// Order of precedence: defaults < file < environment < command line.
#pragma once

#include <kiln/config.hpp>
#include <kiln/status.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

// place.line 0: the problem is not inside a file; place.file then says what it is about ("KILN_LOG", "--set a.b=1", or
// the name of a file that could not be read).
struct ConfigProblem {
  ConfigPlace place;
  std::string message;

  std::string text() const;  // "file:line:column: message", or "KILN_LOG: message"
  bool operator==(const ConfigProblem& other) const;
};

// The variables of an environment (`environ`, as execve passes it) that a configuration depends on, for
// ConfigSources::environment.
std::map<std::string, std::string> configuration_environment(const char* const* environment);
// Those of this process, as they are now.
std::map<std::string, std::string> configuration_environment();

struct ConfigSources {
  std::optional<std::filesystem::path> file;  // else the file that KILN_CONFIG names, if any
  // HOME, XDG_CACHE_HOME, XDG_STATE_HOME, KILN_*. Empty values count as unset, and so does a HOME or XDG_* that is no
  // absolute path. Without a home nothing is kept on disk: cache.directory or cache.key_file is empty.
  std::map<std::string, std::string> environment = configuration_environment();
  std::vector<std::string> set;                // --set "key=value": the value in TOML's syntax; a bare word is a text
  std::optional<std::string> cache_directory;  // --cache-dir
  std::optional<std::string> plugin_path;      // --plugin-path: folders with ':' between them
  std::optional<std::string> log_level;        // --log
};

struct ConfigReading {
  Config config;
  std::vector<ConfigProblem> problems;  // sorted by place; empty: the config is valid
  std::vector<ConfigProblem> warnings;  // likewise: values of earlier versions, which were read as today's
};

ConfigReading read_config(const ConfigSources& sources);

// Checks each [plugin.NAME] section against the keys that plugin published. A section of a plugin that is in
// plugins.load and not in `keys` is left alone: that plugin could not be loaded (one that was loaded and has no keys
// stands in `keys` with none). A section of a plugin that is not in plugins.load is a problem.
std::vector<ConfigProblem> check_plugin_sections(const Config& config,
                                                 const std::map<std::string, std::vector<ConfigKey>>& keys);

// The section with defaults filled in. A value that check_plugin_sections refuses is left out in favour of its default.
PluginSettings plugin_settings(const Config& config, const std::string& plugin, std::span<const ConfigKey> keys);

// One line a key, "(origin) key = value": the fixed sections in the order of the documentation, the plugins' keys, the
// jobs.
std::string show_config(const Config& config, const std::map<std::string, std::vector<ConfigKey>>& keys);
// The same as one JSON object: {"schema", "values": [{"key", "value", "origin", "detail"}], "jobs": […]}.
std::string show_config_json(const Config& config, const std::map<std::string, std::vector<ConfigKey>>& keys);

// The complete, commented configuration with every key at its default: what configs/default.toml holds.
std::string default_config_text();

// "50 MiB", "500MiB", "4096" (bytes); "10 s", "250 ms", "30d". invalid_argument says what was found and expected.
Result<std::uint64_t> parse_size(std::string_view text);
Result<std::chrono::nanoseconds> parse_duration(std::string_view text);

}  // namespace kiln
