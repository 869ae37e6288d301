// Reading a configuration: its text, and the Config in the making.
//
// read_text_file: a whole configuration, or why not. A pipe and a device are read too, so that it may come from
// /dev/stdin.
//
// Thread-safety: any thread. Ownership: the answer owns the text.
#pragma once

#include <kiln/config_reader.hpp>
#include <kiln/status.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "config/key_table.hpp"
#include "config/toml_document.hpp"

namespace kiln::config {

inline constexpr std::size_t most_text_bytes = 4u << 20u;

// not_found, io or invalid_argument (a folder, a pipe without a writer, or more than most_text_bytes). The message does
// not repeat the path.
Result<std::string> read_text_file(const std::filesystem::path& path);

// Draft: a Config in the making and the problems met so far; what every part of the reader writes into.
//
// Thread-safety: none; one reading, one thread. Ownership: owns both.

// Where a value came from: what a message and an origin say, and where its relative paths start.
struct ValueSource {
  ConfigPlace place;
  ConfigOrigin origin;
  std::filesystem::path base;  // empty: the working directory
};

struct Draft {
  Config config;
  std::vector<ConfigProblem> problems;
  std::vector<ConfigProblem> warnings;
  std::map<std::string, ConfigPlace> job_names;
  std::map<std::string, ConfigPlace> job_outputs;  // files, in their shortest spelling
  std::map<std::string, std::string> environment;  // what counts as set (config/environment.hpp)
  std::set<std::string, std::less<>> attempted;    // keys that somebody gave a value, be it a wrong one

  void problem(const ConfigPlace& place, std::string message) { problems.push_back({place, std::move(message)}); }
};

struct FileContext {
  std::string name;            // as messages show it
  std::filesystem::path base;  // its folder

  ConfigPlace place(TextPosition at) const { return {name, at.line, at.column}; }
  ConfigOrigin origin(TextPosition at) const;  // "name:line:column"
  ValueSource source(TextPosition at) const { return {place(at), origin(at), base}; }
};

// Checks the value, expands paths, stores it with its origin; or adds the problem.
void assign(Draft& draft, const KeyEntry& key, const TomlNode& value, const ValueSource& source);

// Stores a value of [plugin.NAME], whose keys are not known yet; a problem where its type is none that plugins can
// have.
void assign_plugin(Draft& draft, const std::string& plugin, const std::string& key, const TomlNode& value,
                   const ValueSource& source);

// "cache.policy" for "cache.polcy"; the same name in another section wins over a distant one in this.
std::string_view nearest_key(std::string_view dotted);

}  // namespace kiln::config
