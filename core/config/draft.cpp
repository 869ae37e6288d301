#include "config/draft.hpp"

#include "config/environment.hpp"

#include <kiln/config_text.hpp>

#include <algorithm>
#include <utility>

namespace kiln::config {
namespace {

Result<ConfigValue> with_paths_expanded(ConfigValue value, const KeyEntry& key, const Draft& draft,
                                        const std::filesystem::path& base) {
  if (key.rule.kind == ValueKind::path) {
    const auto& text = std::get<std::string>(value);
    if (text.empty()) return value;  // none
    Result<std::string> path = expanded_path(text, draft.environment, base);
    // The cache is what a process without a home can do without.
    if (!path && path.error().code == StatusCode::not_found && section_of(key) == "cache")
      return ConfigValue(std::string());
    if (!path) return path.error();
    return ConfigValue(std::move(*path));
  }
  if (key.rule.kind == ValueKind::path_list) {
    auto& list = std::get<std::vector<std::string>>(value);
    std::erase(list, std::string());  // "a::b": an empty part would mean the working directory
    for (std::string& item : list) {
      Result<std::string> path = expanded_path(item, draft.environment, base);
      if (!path) return path.error();
      item = std::move(*path);
    }
  }
  return value;
}

}  // namespace

ConfigOrigin FileContext::origin(TextPosition at) const {
  return {OriginKind::file, name + ":" + std::to_string(at.line) + ":" + std::to_string(at.column)};
}

void assign(Draft& draft, const KeyEntry& key, const TomlNode& value, const ValueSource& source) {
  draft.attempted.emplace(key.name);
  if (value.kind == TomlKind::text && std::ranges::find(key.rule.removed, value.text) != key.rule.removed.end()) {
    const std::string successor = toml_text(key.rule.successor);
    draft.warnings.push_back({source.place, std::string(key.name) + ": " + toml_text(value.text) +
                                                " is no longer a choice: " + successor + " is used. Write " +
                                                successor});
    TomlNode current;
    current.kind = TomlKind::text;
    current.text = key.rule.successor;
    return assign(draft, key, current, source);
  }
  Result<ConfigValue> result = checked(value, key.rule);
  if (result) result = with_paths_expanded(std::move(*result), key, draft, source.base);
  if (!result) return draft.problem(source.place, std::string(key.name) + ": " + result.error().message);
  key.set(draft.config, *result);
  ConfigOrigin& origin = draft.config.origins[std::string(key.name)];
  origin = source.origin;
  origin.place = source.place;
}

void assign_plugin(Draft& draft, const std::string& plugin, const std::string& key, const TomlNode& value,
                   const ValueSource& source) {
  const std::optional<ConfigValue> plain = plain_value(value);
  if (!plain) {
    return draft.problem(source.place, "plugin." + toml_key(plugin) + "." + toml_key(key) + ": found " +
                                           describe(value) +
                                           ", expected a boolean, a number, a text or an array of texts");
  }
  draft.config.plugin[plugin][key] = {*plain, source.origin, source.place};
  draft.config.plugin_places.try_emplace(plugin, source.place);
}

std::string_view nearest_key(std::string_view dotted) {
  const std::size_t dot = dotted.find('.');
  const std::string_view section = dot == std::string_view::npos ? std::string_view{} : dotted.substr(0, dot);
  const std::string_view name = dot == std::string_view::npos ? dotted : dotted.substr(dot + 1);
  std::string_view best;
  std::size_t least = std::string_view::npos;
  for (const KeyEntry& key : key_table()) {
    const bool at_home = section_of(key) == section;
    std::size_t distance = edit_distance(name, name_in_section(key));
    // A stranger must match nearly as written to be more likely than a neighbour.
    if (!at_home) distance = 2 * distance + 2 + (section.empty() ? 0 : edit_distance(section, section_of(key)) / 4);
    if (distance < least) least = distance, best = key.name;
  }
  return best;
}

}  // namespace kiln::config

namespace kiln {

ConfigPlace JobConfig::place_of(std::string_view key) const {
  while (places != nullptr && !key.empty()) {
    if (const auto at = places->find(key); at != places->end()) return at->second;
    const std::size_t end = key.find_last_of(".[");
    key = key.substr(0, end == std::string_view::npos ? 0 : end);
  }
  return place;
}

ConfigPlace Config::place_of(std::string_view key) const {
  const auto origin = origins.find(std::string(key));
  if (origin == origins.end() || origin->second.place.file.empty()) return {std::string(key)};
  return origin->second.place;
}

std::string ConfigProblem::text() const {
  std::string out = place.file;
  if (place.line != 0) out += ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
  return out.empty() ? message : out + ": " + message;
}

bool ConfigProblem::operator==(const ConfigProblem& other) const {
  return place.file == other.place.file && place.line == other.place.line && place.column == other.place.column &&
         message == other.message;
}

}  // namespace kiln
