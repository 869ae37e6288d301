// `config show` as lines and as JSON, against golden output.
#include "core/config/config_fixture.hpp"

#include "config/key_table.hpp"

#include <nlohmann/json.hpp>

using namespace kiln;
using namespace kiln::test;

namespace {

const std::string folder = "tests/golden/config/good/";

// Read under a relative name, so that no golden line depends on where the source tree lies.
Config shown_config() {
  ConfigSources sources = at_home();
  sources.environment["KILN_LOG"] = "info";
  sources.set = {"executor.in_flight=5", "plugin.mine.count=4"};
  const std::string text = file_text(source_dir() / folder / "show.toml");
  ConfigReading reading = read_config_text(text, "show.toml", sources);
  CHECK(texts(reading.problems) == std::vector<std::string>{});
  return std::move(reading.config);
}

std::map<std::string, std::vector<ConfigKey>> keys_of_mine() {
  ConfigKey count{"count", ConfigType::integer, std::int64_t{1}, "How many.", {}, {}, {}};
  ConfigKey word{"word", ConfigType::text, std::string("none"), "Which.", {}, {}, {}};
  return {{"mine", {word, count}}};
}

}  // namespace

TEST_CASE("config: show is one line a key with its origin", "[config]") {
  CHECK(lines(show_config(shown_config(), keys_of_mine())) ==
        lines(file_text(source_dir() / folder / "show.expected")));
}

TEST_CASE("config: show as JSON says the same", "[config]") {
  const std::string text = show_config_json(shown_config(), keys_of_mine());
  CHECK(lines(text) == lines(file_text(source_dir() / folder / "show.json")));
  const auto whole = nlohmann::json::parse(text);
  CHECK(whole["schema"] == 1);
  CHECK(whole["values"].size() == config::key_table().size() + 3);  // with plugin.mine: count, word; plugin.other: x
  CHECK(whole["jobs"].size() == 3);
}

TEST_CASE("config: what is no UTF-8 does not break the JSON", "[config]") {
  ConfigSources sources = at_home();
  sources.environment["KILN_CACHE_DIR"] = "/tmp/\xFF";
  CHECK(nlohmann::json::parse(show_config_json(read_valid("", sources), {})).is_object());
}

TEST_CASE("config: what show prints can be set again", "[config]") {
  const Config config = shown_config();
  ConfigSources sources = at_home();
  for (const std::string& line : lines(show_config(config, {}))) {
    const std::size_t close = line.find(") "), equals = line.find(" = ");
    REQUIRE(equals != std::string::npos);
    const std::string key = line.substr(close + 2, equals - close - 2);
    if (key.find("job ") == 0) continue;
    sources.set.push_back(key + "=" + line.substr(equals + 3));
  }
  const Config again = read_valid("", sources);
  for (const config::KeyEntry& key : config::key_table()) {
    INFO(key.name);
    CHECK(config::print(key.get(again)) == config::print(key.get(config)));
  }
}
