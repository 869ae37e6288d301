#include "config/reader.hpp"

#include "config/environment.hpp"
#include "config/overrides.hpp"
#include "config/sections.hpp"
#include "config/text/text_file.hpp"

#include <optional>
#include <utility>

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

ConfigReading finish(Draft draft, const ConfigSources& sources, const std::string& file) {
  apply_environment(draft);
  apply_command_line(draft, sources);
  set_default_path(draft, "cache.directory", cache_place);
  set_default_path(draft, "cache.key_file", key_place);
  sort_problems(draft.problems, file);
  sort_problems(draft.warnings, file);
  return {std::move(draft.config), std::move(draft.problems), std::move(draft.warnings)};
}

}  // namespace

ConfigReading read_config_text(std::string_view text, const std::string& name, const ConfigSources& sources) {
  Draft draft = draft_for(sources);
  read_text(draft, text, name);
  return finish(std::move(draft), sources, name);
}

}  // namespace kiln::config

namespace kiln {

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

}  // namespace kiln
