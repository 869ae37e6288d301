#include "config/reader.hpp"

#include <kiln/buffer.hpp>
#include <kiln/config_reader.hpp>
#include <kiln/config_text.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "base/policy_names.hpp"
#include "config/environment.hpp"
#include "config/sections.hpp"

namespace kiln::config {
namespace {

Status refused(int error) {
  if (error == ENOENT || error == ENOTDIR) return not_found("no such file");
  return io_error("cannot be read: " + std::generic_category().message(error));
}

constexpr int most_wait_s = 60;

}  // namespace

Result<std::string> read_text_file(const std::filesystem::path& path) {
  // Without O_NONBLOCK, opening a FIFO waits until somebody writes to it.
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file) return refused(errno);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return refused(errno);
  if (S_ISDIR(info.st_mode)) return invalid_argument("found a folder, expected a file");

  std::string text;
  std::array<char, 1u << 14u> block;
  for (;;) {
    const ssize_t got = ::read(file.get(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) {
      pollfd waited{file.get(), POLLIN, 0};
      const int ready = ::poll(&waited, 1, most_wait_s * 1000);
      if (ready > 0 || (ready < 0 && errno == EINTR)) continue;
      return invalid_argument("found a pipe without data for " + std::to_string(most_wait_s) + " s, expected a file");
    }
    if (got < 0) return refused(errno);
    if (got == 0 && text.empty() && S_ISFIFO(info.st_mode)) {
      return invalid_argument("found a pipe without a writer, expected a file");
    }
    if (got == 0) return text;
    text.append(block.data(), static_cast<std::size_t>(got));
    if (text.size() > most_text_bytes) {
      return invalid_argument("found more than the limit of " + std::to_string(most_text_bytes) + " bytes");
    }
  }
}

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
                                                " is no longer supported: " + successor + " is used. Write " +
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
