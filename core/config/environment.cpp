#include "config/environment.hpp"

#include <kiln/config_reader.hpp>
#include <kiln/config_text.hpp>

#include "base/os/privilege.hpp"

#include <unistd.h>

#include <system_error>

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
      return invalid_argument("found " + toml_text(text) + ", expected \"~/\" or a path that starts otherwise");
    }
    const auto home = set.find("HOME");
    if (home == set.end()) {
      return not_found("found " + toml_text(text) +
                       ", expected HOME to be set to an absolute path, which \"~\" stands for");
    }
    path = std::filesystem::path(home->second);
    if (text.size() > 2) path /= text.substr(2);
  } else if (path.is_relative()) {
    path = base / path;
  }
  std::error_code error;
  path = std::filesystem::absolute(path, error);
  if (error) return invalid_argument("found " + toml_text(text) + ": no working directory: " + error.message());
  path = path.lexically_normal();
  if (!path.has_filename() && path != path.root_path()) path = path.parent_path();  // "folder/" names the folder
  return path.string();
}

}  // namespace kiln::config
