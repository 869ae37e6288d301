#include "config/reader.hpp"

#include "config/overrides.hpp"
#include "config/sections.hpp"
#include "config/text/text_file.hpp"

#include <optional>
#include <utility>

namespace kiln::config {
namespace {

Draft draft_for(const ConfigSources& sources) {
  Draft draft;
  for (const auto& [name, value] : sources.environment) {
    if (!value.empty()) draft.environment.emplace(name, value);
  }
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

// XDG: a relative path counts as not set.
void default_path(Draft& draft, std::string_view key_name, const std::string& variable, const std::string& below_home,
                  const std::string& leaf) {
  const KeyEntry& key = *find_key(key_name);
  if (draft.attempted.contains(key_name)) return;
  const auto below = [&leaf](const std::filesystem::path& folder) {
    const std::filesystem::path ours = folder / "kiln";
    return ConfigValue((leaf.empty() ? ours : ours / leaf).lexically_normal().string());
  };
  const auto xdg = draft.environment.find(variable);
  const auto home = draft.environment.find("HOME");
  if (xdg != draft.environment.end() && xdg->second.starts_with('/')) {
    key.set(draft.config, below(xdg->second));
  } else if (home != draft.environment.end() && home->second.starts_with('/')) {
    key.set(draft.config, below(std::filesystem::path(home->second) / below_home));
  } else {
    draft.problem({std::string(key_name)}, "found neither HOME nor " + variable +
                                               " set to an absolute path, expected one of them, or " +
                                               std::string(key_name) + " itself");
  }
}

ConfigReading finish(Draft draft, const ConfigSources& sources, const std::string& file) {
  apply_environment(draft);
  apply_command_line(draft, sources);
  default_path(draft, "cache.directory", "XDG_CACHE_HOME", ".cache", "");
  default_path(draft, "cache.key_file", "XDG_STATE_HOME", ".local/state", "key");
  sort_problems(draft.problems, file);
  return {std::move(draft.config), std::move(draft.problems)};
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

  const Result<std::string> text = config::read_text_file(*file, config::FileKinds::streams);
  if (text) {
    config::read_text(draft, *text, file->string());
  } else {
    draft.problem({file->string()}, text.error().message + (by_environment ? " (named by KILN_CONFIG)" : ""));
  }
  return config::finish(std::move(draft), sources, file->string());
}

}  // namespace kiln
