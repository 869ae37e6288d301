#include <kiln/config_reader.hpp>
#include <kiln/config_text.hpp>

#include "base/policy_names.hpp"
#include "config/environment.hpp"
#include "config/overrides.hpp"
#include "config/sections.hpp"
#include "config/text_file.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace kiln::config {
namespace {

Draft draft_for(const ConfigSources& sources) {
  Draft draft;
  draft.environment = set_variables(sources.environment);
  for (const KeyEntry& key : key_table()) draft.config.origins[std::string(key.name)] = {OriginKind::built_in, ""};
  return draft;
}

void read_text(Draft& draft, std::string_view text, const std::string& name) {
  const FileContext file{name, std::filesystem::path(name).parent_path()};
  const auto parsed = parse_toml(text);
  if (const auto* failure = std::get_if<TomlFailure>(&parsed)) {
    return draft.problem(file.place(failure->at), "not valid TOML: " + failure->message);
  }
  read_sections(draft, std::get<TomlNode>(parsed), file);
}

void set_default_path(Draft& draft, std::string_view key_name, const DefaultPath& place) {
  if (!draft.attempted.contains(key_name)) {
    find_key(key_name)->set(draft.config, ConfigValue(default_path(draft.environment, place)));
  }
}

// A remote needs no second line that names its plugin.
void load_plugins_of_remotes(Config& config) {
  for (const RemoteConfig& remote : config.cache.remotes) {
    const std::string scheme = remote.url.substr(0, remote.url.find("://"));
    if (scheme == "file") continue;
    const std::string plugin = scheme.starts_with("redis") ? "remote_redis" : "remote_http";
    std::vector<std::string>& load = config.plugins.load;
    if (std::ranges::find(load, plugin) == load.end()) load.push_back(plugin);
  }
}

ConfigReading finish(Draft draft, const ConfigSources& sources, const std::string& file) {
  apply_environment(draft);
  apply_command_line(draft, sources);
  set_default_path(draft, "cache.directory", cache_place);
  set_default_path(draft, "cache.key_file", key_place);
  draft.config.cache.trust_folders = trust_folders(draft.environment);
  load_plugins_of_remotes(draft.config);
  for (const std::string& name : draft.config.cache.layer_writers) {
    if (is_key_name(name)) continue;
    draft.problem(draft.config.place_of("cache.layer_writers"),
                  "cache.layer_writers: found " + toml_text(name) + ", expected the name of a key in trust.d");
  }
  sort_problems(draft.problems, file);
  sort_problems(draft.warnings, file);
  return {std::move(draft.config), std::move(draft.problems), std::move(draft.warnings)};
}

}  // namespace

}  // namespace kiln::config

namespace kiln {

void sort_problems(std::vector<ConfigProblem>& problems, const std::string& first_file) {
  std::vector<ConfigProblem> unique;
  for (ConfigProblem& problem : problems) {
    if (std::find(unique.begin(), unique.end(), problem) == unique.end()) unique.push_back(std::move(problem));
  }
  const auto order = [&first_file](const ConfigProblem& problem) {
    const ConfigPlace& place = problem.place;
    // What is not inside a file keeps the order in which it was met: environment, then command line.
    if (place.line == 0) return std::tuple(2, std::string(), std::uint32_t{0}, std::uint32_t{0});
    return std::tuple(place.file == first_file ? 0 : 1, place.file, place.line, place.column);
  };
  std::stable_sort(unique.begin(), unique.end(),
                   [&](const ConfigProblem& a, const ConfigProblem& b) { return order(a) < order(b); });
  problems = std::move(unique);
}

ConfigReading read_config(const ConfigSources& sources) {
  config::Draft draft = config::draft_for(sources);
  std::optional<std::filesystem::path> file = sources.file;
  const auto named = draft.environment.find("KILN_CONFIG");
  const bool by_environment = !file && named != draft.environment.end();
  if (by_environment) file = named->second;
  if (!file) return config::finish(std::move(draft), sources, "");

  const Result<std::string> text = config::read_text_file(*file);
  if (text) {
    config::read_text(draft, *text, file->string());
  } else {
    draft.problem({file->string()}, text.error().message + (by_environment ? " (named by KILN_CONFIG)" : ""));
  }
  return config::finish(std::move(draft), sources, file->string());
}

ConfigReading read_config_text(std::string_view text, const std::string& name, const ConfigSources& sources) {
  config::Draft draft = config::draft_for(sources);
  config::read_text(draft, text, name);
  return config::finish(std::move(draft), sources, name);
}

}  // namespace kiln
