#include "config/overrides.hpp"

#include <kiln/config_text.hpp>
#include <kiln/visible_text.hpp>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::config {
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
    return draft.problem(place, shown + ": jobs are written in a file, expected a key of another section");
  }
  if (key_name == "cache.remote" || key_name.starts_with("cache.remote.")) {
    return draft.problem(place, shown + ": remotes are written in a file, expected a key of another section");
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
