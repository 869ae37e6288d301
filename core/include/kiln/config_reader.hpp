// Configuration reader: reads the TOML file, environment and command line into a typed Config and reports all problems
// at once.
//
// Precedence: defaults < file < environment < command line. The reader uses the environment of the process unless the
// caller passes another one.
// Thread-safety: functions from any thread. Ownership: values. Sizes are in bytes.
//
//   const kiln::ConfigReading reading = kiln::read_config({});
//   for (const kiln::ConfigProblem& problem : reading.problems) std::cerr << problem.text() << '\n';
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

namespace [[gnu::visibility("default")]] kiln {

// place.line is 0 for a problem outside a file. place.file is then the name of the source: "KILN_LOG", "--set a.b=1", or a
// file that could not be read.
struct ConfigProblem {
  ConfigPlace place;
  std::string message;

  std::string text() const;  // "file:line:column: message", or "KILN_LOG: message"
  bool operator==(const ConfigProblem& other) const;
};

// Returns the variables that configure Kiln, for ConfigSources::environment. `environment` is in the format of
// `environ`.
std::map<std::string, std::string> configuration_environment(const char* const* environment);
// The same for the current environment of this process.
std::map<std::string, std::string> configuration_environment();

struct ConfigSources {
  std::optional<std::filesystem::path> file;  // nullopt: the file in KILN_CONFIG, or no file
  // HOME, XDG_CACHE_HOME, XDG_STATE_HOME, KILN_*. Empty values and relative paths in HOME and XDG_* count as unset.
  // Without a home, cache.directory or cache.key_file is empty and nothing is stored on disk.
  std::map<std::string, std::string> environment = configuration_environment();
  std::vector<std::string> set;                // --set "key=value": value in TOML syntax, or a bare word as text
  std::optional<std::string> cache_directory;  // --cache-dir
  std::optional<std::string> plugin_path;      // --plugin-path: folders separated by ':'
  std::optional<std::string> log_level;        // --log
};

struct ConfigReading {
  Config config;
  std::vector<ConfigProblem> problems;  // sorted by place; empty: the config is valid
  std::vector<ConfigProblem> warnings;  // sorted by place: values of earlier versions, read as their replacements
};

ConfigReading read_config(const ConfigSources& sources);
// Reads a text instead of a file. Ignores sources.file. name: the name of the text in messages; its folder is the base of
// relative paths.
ConfigReading read_config_text(std::string_view text, const std::string& name, const ConfigSources& sources);

// Checks each [plugin.NAME] section against the keys that the plugin publishes. A section of a plugin that is not in
// plugins.load is a problem. Skips a plugin that is in plugins.load but not in `keys`, because it was not loaded.
std::vector<ConfigProblem> check_plugin_sections(const Config& config,
                                                 const std::map<std::string, std::vector<ConfigKey>>& keys);

// Returns the section with defaults filled in. Replaces a value that check_plugin_sections() rejects by its default.
PluginSettings plugin_settings(const Config& config, const std::string& plugin, std::span<const ConfigKey> keys);

// Returns one line per key, "(origin) key = value": fixed sections in the order of the documentation, then plugin keys, then
// jobs.
std::string show_config(const Config& config, const std::map<std::string, std::vector<ConfigKey>>& keys);
// Returns the configuration as JSON: {"schema", "values": [{"key", "value", "origin", "detail"}], "jobs": […]}.
std::string show_config_json(const Config& config, const std::map<std::string, std::vector<ConfigKey>>& keys);

// Returns the commented configuration with all defaults (configs/default.toml).
std::string default_config_text();

// Parse "50 MiB", "500MiB", "4096" (bytes) and "10 s", "250 ms", "30d". invalid_argument: the error has the expected
// and the found text.
Result<std::uint64_t> parse_size(std::string_view text);
Result<std::chrono::nanoseconds> parse_duration(std::string_view text);

// Sorts problems by place, with `first_file` before other files, and removes duplicates.
void sort_problems(std::vector<ConfigProblem>& problems, const std::string& first_file);

// Returns the folder of this user's key and of the journal of results (kiln/result_files.hpp). Empty: the environment has no
// home folder.
std::filesystem::path user_state_folder();

}  // namespace kiln
