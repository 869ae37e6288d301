#include "config/sections.hpp"

#include "base/policy_names.hpp"
#include "config/job_reader.hpp"
#include "config/value_rule.hpp"

#include <kiln/config_reader.hpp>
#include <kiln/config_text.hpp>

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>
#include <vector>

namespace kiln::config {
namespace {

constexpr std::string_view modes[] = {"read", "read_write"};
constexpr std::string_view layouts[] = {"plain", "bazel"};
constexpr std::string_view schemes[] = {"http", "https", "s3", "redis", "rediss", "file"};

constexpr RemoteKeyEntry remote_keys[] = {
    {"url",
     "Where the programs are: http://, https://, s3://BUCKET/PREFIX, redis://HOST:PORT/DATABASE, rediss:// (with TLS) "
     "or file:///FOLDER. Never with a user or a password: see credentials.",
     "\"https://cache.example/kiln\""},
    {"mode", "read, or read_write: programs that were built here are written after their first dispatch.", "\"read\""},
    {"writers",
     "Names of the trusted keys whose programs are used; none means that nothing is read. `kiln cache key list` prints "
     "the names. A file cannot add a key.",
     "[\"ci-2026\"]"},
    {"sign_with", "Name of the secret key that signs what is written. Needed by read_write.", "\"ci-2026\""},
    {"credentials",
     "Name of a file in credentials.d of /etc/kiln or ~/.config/kiln with the user and the password for this url.",
     "\"cache\""},
    {"layout", "Names of the objects: plain, or bazel for servers that speak the HTTP cache protocol of Bazel.",
     "\"plain\""},
};

// Why the text is no usable URL; empty where it is one.
std::string fault_of_url(std::string_view url) {
  const std::size_t end = url.find("://");
  const std::string_view scheme = url.substr(0, end == std::string_view::npos ? 0 : end);
  if (std::ranges::find(schemes, scheme) == std::end(schemes)) {
    return "expected a URL that begins with http://, https://, s3://, redis://, rediss:// or file://";
  }
  const std::string_view rest = url.substr(end + 3);
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-._~/:[]").find(c) != std::string_view::npos;
  };
  if (rest.find('@') != std::string_view::npos) {
    return "expected a URL without a user and a password. Put them in a file of credentials.d, and set credentials to "
           "the name of that file";
  }
  if (!std::ranges::all_of(rest, allowed) && scheme != "file") {
    return "expected a URL of letters, digits and -._~/:[] only";
  }
  if (rest.find("/../") != std::string_view::npos || rest.ends_with("/..")) return "expected a URL without '..'";
  if (rest.empty() || (rest.front() == '/') != (scheme == "file")) {
    return scheme == "file" ? "expected an absolute path: file:///mnt/share" : "expected a host";
  }
  return {};
}

class RemoteReader {
 public:
  RemoteReader(Draft& draft, const FileContext& file) : draft_(draft), file_(file) {}

  void read(const TomlNode& table) {
    RemoteConfig remote;
    remote.place = file_.place(table.at);
    const std::size_t problems = draft_.problems.size();
    bool has_url = false;
    for (const TomlMember& member : table.members) {
      has_url = has_url || member.key == "url";
      read_key(remote, member);
    }
    if (draft_.problems.size() != problems) return;
    if (!has_url) return problem(table.at, "url", "missing, expected a URL such as \"https://cache.example/kiln\"");
    if (remote.writes && remote.sign_with.empty()) {
      return problem(table.at, "mode",
                     "\"read_write\" needs sign_with, the name of the key that signs what is written");
    }
    if (!remote.writes && !remote.sign_with.empty()) {
      return problem(table.at, "sign_with", "has no effect with mode = \"read\": expected mode = \"read_write\"");
    }
    draft_.config.cache.remotes.push_back(std::move(remote));
  }

 private:
  void problem(TextPosition at, std::string_view key, const std::string& what) {
    draft_.problem(file_.place(at), "cache.remote." + std::string(key) + ": " + what);
  }

  std::string text(const TomlMember& member, ValueRule rule = {ValueKind::text}) {
    const Result<ConfigValue> value = checked(member.value, rule);
    if (value) return std::get<std::string>(*value);
    problem(member.value.at, member.key, value.error().message);
    return {};
  }

  static ValueRule word(std::span<const std::string_view> allowed) {
    ValueRule rule{ValueKind::text};
    rule.allowed = allowed;
    return rule;
  }

  // Keys are chosen by name. A path would let a file bring its own key.
  std::string key_name(const TomlMember& member, TextPosition at, const std::string& name, std::string_view folder) {
    if (!is_key_name(name)) {
      problem(at, member.key,
              "found " + toml_text(name) + ", expected a name from " + std::string(folder) +
                  " (letters, digits and ._-), not a path");
    }
    return name;
  }

  void read_key(RemoteConfig& remote, const TomlMember& member) {
    if (member.key == "url") {
      remote.url = text(member);
      while (remote.url.size() > 8 && remote.url.ends_with('/')) remote.url.pop_back();
      if (remote.url.empty()) return;
      if (const std::string fault = fault_of_url(remote.url); !fault.empty()) {
        // What stands before an '@' may be a password: it is not repeated.
        const bool secret = remote.url.find('@') != std::string::npos;
        problem(member.value.at, "url", (secret ? "" : "found " + toml_text(remote.url) + ", ") + fault);
      }
    } else if (member.key == "mode") {
      remote.writes = text(member, word(modes)) == "read_write";
    } else if (member.key == "writers") {
      const Result<ConfigValue> value = checked(member.value, {ValueKind::text_list});
      if (!value) return problem(member.value.at, "writers", value.error().message);
      for (const std::string& name : std::get<std::vector<std::string>>(*value)) {
        remote.writers.push_back(key_name(member, member.value.at, name, "trust.d"));
      }
    } else if (member.key == "sign_with") {
      remote.sign_with = key_name(member, member.value.at, text(member), "keys.d");
    } else if (member.key == "credentials") {
      remote.credentials = key_name(member, member.value.at, text(member), "credentials.d");
    } else if (member.key == "layout") {
      remote.layout = text(member, word(layouts));
    } else {
      std::vector<std::string_view> names;
      for (const RemoteKeyEntry& key : remote_keys) names.push_back(key.name);
      problem(member.at, toml_key(member.key), "unknown key; nearest: " + std::string(nearest_word(member.key, names)));
    }
  }

  Draft& draft_;
  const FileContext& file_;
};

}  // namespace

std::span<const RemoteKeyEntry> remote_key_table() noexcept { return remote_keys; }

void read_remotes(Draft& draft, const TomlMember& remotes, const FileContext& file) {
  const TomlNode& value = remotes.value;
  if (value.kind != TomlKind::array) {
    return draft.problem(file.place(remotes.at),
                         "cache.remote: found " + describe(value) + ", expected sections: [[cache.remote]]");
  }
  RemoteReader reader(draft, file);
  for (const TomlNode& item : value.items) {
    if (item.kind != TomlKind::table) {
      draft.problem(file.place(item.at),
                    "cache.remote: found " + describe(item) + ", expected a section: [[cache.remote]]");
      continue;
    }
    reader.read(item);
  }
}

namespace {

void read_fixed_section(Draft& draft, const TomlMember& section, const FileContext& file) {
  if (section.value.kind != TomlKind::table) {
    return draft.problem(file.place(section.at), section.key + ": found " + describe(section.value) +
                                                     ", expected a section: [" + section.key + "]");
  }
  for (const TomlMember& member : section.value.members) {
    const std::string dotted = section.key + "." + member.key;
    if (dotted == "cache.remote") {
      read_remotes(draft, member, file);
      continue;
    }
    const KeyEntry* key = find_key(dotted);
    if (key == nullptr) {
      draft.problem(file.place(member.at), section.key + "." + toml_key(member.key) +
                                               ": unknown key; nearest: " + std::string(nearest_key(dotted)));
    } else if (key->place == KeyPlace::outside_file) {
      draft.problem(file.place(member.at),
                    dotted + ": found in a file, allowed only on the command line and in the environment");
    } else {
      // Wrong types and values are told where the value stands, the origin is where the key does.
      ValueSource source = file.source(member.at);
      source.place = file.place(member.value.at);
      assign(draft, *key, member.value, source);
    }
  }
}

void read_plugin_sections(Draft& draft, const TomlMember& plugins, const FileContext& file) {
  if (plugins.value.kind != TomlKind::table) {
    return draft.problem(file.place(plugins.at),
                         "plugin: found " + describe(plugins.value) + ", expected sections: [plugin.NAME]");
  }
  for (const TomlMember& section : plugins.value.members) {
    if (section.value.kind != TomlKind::table) {
      draft.problem(file.place(section.at), "plugin." + toml_key(section.key) + ": found " + describe(section.value) +
                                                ", expected a section: [plugin." + toml_key(section.key) + "]");
      continue;
    }
    draft.config.plugin[section.key];
    draft.config.plugin_places[section.key] = file.place(section.at);
    for (const TomlMember& member : section.value.members) {
      assign_plugin(draft, section.key, member.key, member.value, file.source(member.at));
    }
  }
}

void report_unknown(Draft& draft, const TomlMember& member, const FileContext& file) {
  if (member.value.kind == TomlKind::table || member.value.kind == TomlKind::array) {
    std::vector<std::string_view> names;
    for (const SectionEntry& section : section_table()) names.push_back(section.name);
    names.insert(names.end(), {"plugin", "job", "pipeline"});
    const std::string_view nearest = nearest_word(member.key, names);
    const std::string shown = nearest == "job" || nearest == "pipeline" ? "[[" + std::string(nearest) + "]]"
                              : nearest == "plugin"                     ? "[plugin.NAME]"
                                                                        : "[" + std::string(nearest) + "]";
    return draft.problem(file.place(member.at), "[" + toml_key(member.key) + "]: unknown section; nearest: " + shown);
  }
  draft.problem(file.place(member.at), toml_key(member.key) + ": unknown key outside the sections; nearest: " +
                                           std::string(nearest_key(member.key)));
}

}  // namespace

void read_sections(Draft& draft, const TomlNode& root, const FileContext& file) {
  for (const TomlMember& member : root.members) {
    bool fixed = false;
    for (const SectionEntry& section : section_table()) fixed = fixed || section.name == member.key;
    if (fixed) {
      read_fixed_section(draft, member, file);
    } else if (member.key == "plugin") {
      read_plugin_sections(draft, member, file);
    } else if (member.key == "job") {
      read_jobs(draft, member, file);
    } else if (member.key == "pipeline") {
      read_pipelines(draft, member, file);
    } else {
      report_unknown(draft, member, file);
    }
  }
}

}  // namespace kiln::config

namespace kiln {
namespace {

using config::ValueRule;

Result<ConfigValue> checked_setting(const RawSetting& setting, const ConfigKey& key) {
  const std::vector<std::string_view> allowed(key.allowed.begin(), key.allowed.end());
  return config::checked(setting.value, config::rule_of(key, allowed));
}

std::string nearest(std::string_view word, const std::vector<std::string_view>& known, std::string_view prefix) {
  return std::string(prefix) + std::string(config::nearest_word(word, known));
}

ConfigProblem unknown_plugin(const Config& config, const std::string& plugin) {
  const auto place = config.plugin_places.find(plugin);
  const std::vector<std::string_view> loaded(config.plugins.load.begin(), config.plugins.load.end());
  std::string message =
      "[plugin." + config::toml_key(plugin) + "]: found a section of a plugin that is not in plugins.load";
  message += loaded.empty() ? ", which is empty" : "; nearest: [" + nearest(plugin, loaded, "plugin.") + "]";
  return {place == config.plugin_places.end() ? ConfigPlace{} : place->second, std::move(message)};
}

void check_section(const std::string& plugin, const RawPluginSection& section, const std::vector<ConfigKey>& keys,
                   std::vector<ConfigProblem>& problems) {
  std::vector<std::string_view> names;
  for (const ConfigKey& key : keys) names.push_back(key.name);
  for (const auto& [name, setting] : section) {
    const std::string dotted = "plugin." + config::toml_key(plugin) + "." + config::toml_key(name);
    const auto key =
        std::find_if(keys.begin(), keys.end(), [&name = name](const ConfigKey& each) { return each.name == name; });
    if (key == keys.end()) {
      std::string message = dotted + ": unknown key";
      message +=
          names.empty() ? ": the plugin has no keys" : "; nearest: " + nearest(name, names, "plugin." + plugin + ".");
      problems.push_back({setting.place, std::move(message)});
    } else if (const Result<ConfigValue> value = checked_setting(setting, *key); !value) {
      problems.push_back({setting.place, dotted + ": " + value.error().message});
    }
  }
}

}  // namespace

std::vector<ConfigProblem> check_plugin_sections(const Config& config,
                                                 const std::map<std::string, std::vector<ConfigKey>>& keys) {
  std::vector<ConfigProblem> problems;
  for (const auto& [plugin, section] : config.plugin) {
    const auto published = keys.find(plugin);
    const std::vector<std::string>& load = config.plugins.load;
    if (std::find(load.begin(), load.end(), plugin) == load.end()) {
      problems.push_back(unknown_plugin(config, plugin));
    } else if (published != keys.end()) {
      check_section(plugin, section, published->second, problems);
    }
  }
  std::stable_sort(problems.begin(), problems.end(), [](const ConfigProblem& a, const ConfigProblem& b) {
    const auto order = [](const ConfigPlace& place) { return std::tuple(place.line == 0, place.line, place.column); };
    return order(a.place) < order(b.place);
  });
  return problems;
}

PluginSettings plugin_settings(const Config& config, const std::string& plugin, std::span<const ConfigKey> keys) {
  PluginSettings settings;
  const auto section = config.plugin.find(plugin);
  for (const ConfigKey& key : keys) {
    settings[key.name] = key.fallback;
    if (section == config.plugin.end()) continue;
    const auto setting = section->second.find(key.name);
    if (setting == section->second.end()) continue;
    if (Result<ConfigValue> value = checked_setting(setting->second, key)) settings[key.name] = std::move(*value);
  }
  return settings;
}

}  // namespace kiln
