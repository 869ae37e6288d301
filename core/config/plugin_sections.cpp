#include <kiln/config_reader.hpp>
#include <kiln/config_text.hpp>

#include "config/value_rule.hpp"

#include <algorithm>
#include <string_view>
#include <tuple>

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
          names.empty() ? ": the plugin has none" : "; nearest: " + nearest(name, names, "plugin." + plugin + ".");
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
