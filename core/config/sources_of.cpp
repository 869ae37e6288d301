#include "config/sources_of.hpp"

#include "config/key_table.hpp"

namespace kiln::config {

ConfigSources sources_of(const Config& config) {
  ConfigSources sources;
  sources.environment.clear();
  Config usual;
  usual.cache.directory.clear();  // what these are by default depends on the environment
  usual.cache.key_file.clear();
  for (const KeyEntry& key : key_table()) {
    const ConfigValue value = key.get(config);
    if (value == key.get(usual)) continue;
    sources.set.push_back(std::string(key.name) + "=" + print(value, key.rule));
  }
  for (const auto& [plugin, section] : config.plugin) {
    for (const auto& [name, setting] : section) {
      sources.set.push_back("plugin." + plugin + "." + name + "=" + print(setting.value));
    }
  }
  return sources;
}

}  // namespace kiln::config
