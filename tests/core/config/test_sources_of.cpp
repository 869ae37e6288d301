// A configuration handed to another process as words of its command line.
#include "core/config/config_fixture.hpp"

#include "config/key_table.hpp"
#include "config/show.hpp"

using namespace kiln;
using namespace kiln::test;

TEST_CASE("config: sources_of reads back as the same values, without a file or an environment", "[config]") {
  ConfigSources first = at_home();
  first.file = std::string(KILN_SOURCE_DIR) + "/tests/golden/config/good/every_key.toml";
  first.plugin_path = "/one folder:/another";
  first.set = {"cache.max_memory=1234567", "executor.timeout=\"1500 us\"", "selector.exploration=0.125"};
  ConfigReading told = read_config(first);
  REQUIRE(texts(told.problems).empty());
  Config& config = told.config;
  config.plugin["some"]["words"].value = std::vector<std::string>{"a \"b\"", "c,d"};
  config.plugin["some"]["share"].value = 0.1;

  const ConfigSources sources = config::sources_of(config);
  CHECK_FALSE(sources.file.has_value());
  CHECK(sources.environment.empty());
  const ConfigReading reading = read_config(sources);
  REQUIRE(texts(reading.problems).empty());
  for (const config::KeyEntry& key : config::key_table()) {
    INFO(key.name);
    CHECK(key.get(reading.config) == key.get(config));
  }
  REQUIRE(reading.config.plugin.size() == config.plugin.size());
  for (const auto& [plugin, section] : config.plugin) {
    for (const auto& [name, setting] : section) {
      INFO(plugin << "." << name);
      CHECK(reading.config.plugin.at(plugin).at(name).value == setting.value);
    }
  }
  CHECK(reading.config.jobs.empty());
}
