#include "config/environment.hpp"

#include <kiln/config_reader.hpp>
#include <kiln/config_text.hpp>
#include <kiln/visible_text.hpp>

#include "base/os/process_limits.hpp"

#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace kiln {
namespace {

// A value that read_config() refuses names no folder.
std::filesystem::path named_or_default(const char* variable, const config::DefaultPath& otherwise) {
  if (has_borrowed_rights()) return {};
  const config::Environment environment = config::set_variables(configuration_environment());
  const auto named = environment.find(variable);
  if (named == environment.end()) return config::default_path(environment, otherwise);
  const Result<std::string> path = config::expanded_path(named->second, environment, {});
  return path ? std::filesystem::path(*path) : std::filesystem::path();
}

}  // namespace

std::map<std::string, std::string> configuration_environment(const char* const* environment) {
  std::map<std::string, std::string> kept;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view text(*environment);
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = text.substr(0, equals);
    if (name == "HOME" || name.starts_with("XDG_") || name.starts_with("KILN_")) {
      kept.emplace(name, text.substr(equals + 1));
    }
  }
  return kept;
}

std::map<std::string, std::string> configuration_environment() { return configuration_environment(environ); }

std::filesystem::path user_cache_directory() { return named_or_default("KILN_CACHE_DIR", config::cache_place); }
std::filesystem::path user_key_file() { return named_or_default("KILN_KEY_FILE", config::key_place); }
std::filesystem::path user_state_folder() { return user_key_file().parent_path(); }

std::vector<std::filesystem::path> user_trust_folders() {
  return config::trust_folders(has_borrowed_rights() ? config::Environment()
                                                     : config::set_variables(configuration_environment()));
}

}  // namespace kiln

namespace kiln::config {

Environment set_variables(const Environment& all) {
  Environment set;
  for (const auto& [name, value] : all) {
    const bool must_be_absolute =
        name == "HOME" || name == cache_place.variable || name == key_place.variable || name == trust_place.variable;
    if (!value.empty() && (!must_be_absolute || value.starts_with('/'))) set.emplace(name, value);
  }
  return set;
}

std::string default_path(const Environment& set, const DefaultPath& place) {
  const auto below = [&place](const std::filesystem::path& folder) {
    const std::filesystem::path ours = folder / "kiln";
    return (place.leaf.empty() ? ours : ours / place.leaf).lexically_normal().string();
  };
  if (const auto xdg = set.find(std::string(place.variable)); xdg != set.end()) return below(xdg->second);
  if (const auto home = set.find("HOME"); home != set.end()) {
    return below(std::filesystem::path(home->second) / place.below_home);
  }
  return {};
}

std::vector<std::filesystem::path> trust_folders(const Environment& set) {
  std::vector<std::filesystem::path> folders{"/etc/kiln"};
  if (std::string of_user = default_path(set, trust_place); !of_user.empty()) folders.emplace_back(std::move(of_user));
  return folders;
}

Result<std::string> expanded_path(const std::string& text, const Environment& set, const std::filesystem::path& base) {
  std::filesystem::path path(text);
  if (text.starts_with('~')) {
    if (text.size() > 1 && text[1] != '/') {
      return invalid_argument("found " + toml_text(text) + ", expected \"~/\" or a path without a leading \"~\"");
    }
    const auto home = set.find("HOME");
    if (home == set.end()) {
      return not_found("found " + toml_text(text) +
                       ", but HOME, which \"~\" stands for, is not set to an absolute path");
    }
    path = std::filesystem::path(home->second);
    if (text.size() > 2) path /= text.substr(2);
  } else if (path.is_relative()) {
    path = base / path;
  }
  std::error_code error;
  path = std::filesystem::absolute(path, error);
  if (error) {
    return invalid_argument("found " + toml_text(text) + ", but no working directory exists: " + error.message());
  }
  path = path.lexically_normal();
  if (!path.has_filename() && path != path.root_path()) path = path.parent_path();  // "folder/" names the folder
  return path.string();
}

namespace {

struct Variable {
  std::string_view variable;
  std::string_view key;
};

constexpr Variable variables[] = {{"KILN_CACHE_DIR", "cache.directory"},
                                  {"KILN_PLUGIN_PATH", "plugins.path"},
                                  {"KILN_KEY_FILE", "cache.key_file"},
                                  {"KILN_LOG", "log.level"}};

TomlNode text_node(std::string_view text) {
  TomlNode node;
  node.kind = TomlKind::text;
  node.text = text;
  return node;
}

// Texts with ':' between them.
TomlNode list_node(std::string_view text) {
  TomlNode node;
  node.kind = TomlKind::array;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(':', start), text.size());
    node.items.push_back(text_node(text.substr(start, end - start)));
    start = end + 1;
  }
  return node;
}

// A plain text from outside: whole for most keys, split at ':' for a list of paths.
void assign_text(Draft& draft, std::string_view key_name, std::string_view text, const ValueSource& source) {
  const KeyEntry& key = *find_key(key_name);
  assign(draft, key, key.rule.kind == ValueKind::path_list ? list_node(text) : text_node(text), source);
}

// The value of a --set in TOML's syntax; what is not is a bare word, unless it began like quoted or composed TOML.
std::variant<TomlNode, TomlFailure> parse_value(std::string_view text) {
  auto parsed = parse_toml("value = " + std::string(text));
  if (auto* root = std::get_if<TomlNode>(&parsed)) {
    if (root->members.size() == 1 && root->members[0].key == "value") return std::move(root->members[0].value);
  }
  constexpr std::string_view composed = "\"'[{";
  if (!text.empty() && composed.find(text[0]) != std::string_view::npos) {
    if (const auto* failure = std::get_if<TomlFailure>(&parsed)) return *failure;
    return TomlFailure{{}, "more than one value"};
  }
  return text_node(text);
}

// A key that takes texts takes 3 or true as they were typed, and a list takes a single text.
TomlNode fitted(TomlNode value, std::string_view typed, ValueKind kind) {
  const bool scalar = value.kind != TomlKind::array && value.kind != TomlKind::table;
  const bool list = kind == ValueKind::text_list || kind == ValueKind::path_list;
  if (!scalar || (kind != ValueKind::text && kind != ValueKind::path && !list)) return value;
  TomlNode text = value.kind == TomlKind::text ? std::move(value) : text_node(typed);
  if (!list) return text;
  TomlNode node;
  node.kind = TomlKind::array;
  node.items.push_back(std::move(text));
  return node;
}

void apply_set(Draft& draft, const std::string& argument) {
  const ConfigPlace place{"--set " + visible(argument)};
  const std::size_t equals = argument.find('=');
  if (equals == std::string::npos || equals == 0) {
    return draft.problem(place, "found no key and value, expected key=value");
  }
  const std::string key_name = argument.substr(0, equals);
  const std::string shown = visible(key_name);
  const std::string_view typed = std::string_view(argument).substr(equals + 1);
  auto parsed = parse_value(typed);
  if (const auto* failure = std::get_if<TomlFailure>(&parsed)) {
    return draft.problem(place, shown + ": not valid TOML: " + failure->message);
  }
  TomlNode& value = std::get<TomlNode>(parsed);
  const ValueSource source{place, {OriginKind::command_line, "--set " + key_name}, {}};
  if (const KeyEntry* key = find_key(key_name)) {
    return assign(draft, *key, fitted(std::move(value), typed, key->rule.kind), source);
  }
  constexpr std::string_view plugin = "plugin.";
  if (key_name.starts_with(plugin)) {
    const std::size_t dot = key_name.find('.', plugin.size());
    const bool whole = dot != std::string::npos && dot > plugin.size() && dot + 1 < key_name.size() &&
                       key_name.find('.', dot + 1) == std::string::npos;
    if (!whole) return draft.problem(place, shown + ": expected plugin.NAME.KEY");
    return assign_plugin(draft, key_name.substr(plugin.size(), dot - plugin.size()), key_name.substr(dot + 1), value,
                         source);
  }
  if (key_name == "job" || key_name.starts_with("job.")) {
    return draft.problem(place, shown + ": jobs can be set only in a configuration file");
  }
  if (key_name == "cache.remote" || key_name.starts_with("cache.remote.")) {
    return draft.problem(place, shown + ": remotes can be set only in a configuration file");
  }
  draft.problem(place, shown + ": unknown key; nearest: " + std::string(nearest_key(key_name)));
}

}  // namespace

void apply_environment(Draft& draft) {
  for (const auto& [variable, key] : variables) {
    const auto found = draft.environment.find(std::string(variable));
    if (found == draft.environment.end()) continue;
    const std::string name(variable);
    assign_text(draft, key, found->second, {{name}, {OriginKind::environment, name}, {}});
  }
}

void apply_command_line(Draft& draft, const ConfigSources& sources) {
  for (const std::string& argument : sources.set) apply_set(draft, argument);
  const auto option = [&](const std::optional<std::string>& value, const char* name, std::string_view key) {
    if (value) assign_text(draft, key, *value, {{name}, {OriginKind::command_line, name}, {}});
  };
  option(sources.cache_directory, "--cache-dir", "cache.directory");
  option(sources.plugin_path, "--plugin-path", "plugins.path");
  option(sources.log_level, "--log", "log.level");
}

}  // namespace kiln::config
