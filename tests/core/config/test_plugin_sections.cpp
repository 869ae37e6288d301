// [plugin.NAME] sections against the keys that plugins publish.
#include "core/config/config_fixture.hpp"

using namespace kiln;
using namespace kiln::test;

namespace {

using Keys = std::map<std::string, std::vector<ConfigKey>>;

Keys published() {
  std::vector<ConfigKey> keys(5);
  keys[0] = {"threads", ConfigType::integer, std::int64_t{2}, "Worker threads.", 1.0, 8.0, {}};
  keys[1] = {"share", ConfigType::number, 0.5, "Share of memory.", 0.0, 1.0, {}};
  keys[2] = {"mode", ConfigType::text, std::string("safe"), "How to run.", {}, {}, {"safe", "fast"}};
  keys[3] = {"flags", ConfigType::text_list, std::vector<std::string>{}, "Passed on.", {}, {}, {}};
  keys[4] = {"label", ConfigType::text, std::string(), "Anything.", {}, {}, {}};
  return {{"opengl", keys}, {"cpu", {}}};
}

std::vector<std::string> problems_of(const std::string& text, const ConfigSources& sources = at_home()) {
  return texts(check_plugin_sections(read_valid(text, sources), published()));
}

}  // namespace

TEST_CASE("config: a good plugin section", "[config]") {
  const char* text =
      "[plugin.opengl]\nthreads = 4\nshare = 1\nmode = \"fast\"\nflags = [\"a\", \"b\"]\nlabel = \"\"\n[plugin.cpu]\n";
  CHECK(problems_of(text).empty());
  const Keys keys = published();
  const PluginSettings settings = plugin_settings(read_valid(text), "opengl", keys.at("opengl"));
  CHECK(settings.size() == 5);
  CHECK(std::get<std::int64_t>(settings.at("threads")) == 4);
  CHECK(std::get<double>(settings.at("share")) == 1.0);  // an integer stands for the number
  CHECK(std::get<std::string>(settings.at("mode")) == "fast");
  CHECK(std::get<std::vector<std::string>>(settings.at("flags")) == std::vector<std::string>{"a", "b"});
}

TEST_CASE("config: what a section leaves out has its default", "[config]") {
  const Keys keys = published();
  const PluginSettings none = plugin_settings(read_valid(""), "opengl", keys.at("opengl"));
  CHECK(std::get<std::int64_t>(none.at("threads")) == 2);
  CHECK(std::get<double>(none.at("share")) == 0.5);
  CHECK(std::get<std::string>(none.at("mode")) == "safe");
  const PluginSettings refused =
      plugin_settings(read_valid("[plugin.opengl]\nthreads = 9\n"), "opengl", keys.at("opengl"));
  CHECK(std::get<std::int64_t>(refused.at("threads")) == 2);
}

TEST_CASE("config: every problem of plugin sections, by place", "[config]") {
  CHECK(problems_of(
            "[plugin.opengl]\nthreds = 3\nshare = 1.5\nmode = \"fats\"\nflags = \"a\"\nthreads = \"two\"\nlabel = 1\n"
            "[plugin.cpu]\nx = 1\n[plugin.opengll]\n") ==
        std::vector<std::string>{
            "test.toml:2:1: plugin.opengl.threds: unknown key; nearest: plugin.opengl.threads",
            "test.toml:3:1: plugin.opengl.share: found 1.5, expected a number from 0.0 to 1.0",
            "test.toml:4:1: plugin.opengl.mode: found \"fats\", expected one of safe, fast; nearest: fast",
            "test.toml:5:1: plugin.opengl.flags: found the text \"a\", expected an array of texts",
            "test.toml:6:1: plugin.opengl.threads: found the text \"two\", expected an integer from 1 to 8",
            "test.toml:7:1: plugin.opengl.label: found the integer 1, expected a text",
            "test.toml:9:1: plugin.cpu.x: unknown key: the plugin has no keys",
            "test.toml:10:9: [plugin.opengll]: found a section of a plugin that is not in plugins.load; nearest: "
            "[plugin.opengl]"});
}

TEST_CASE("config: a plugin that could not be loaded is left alone", "[config]") {
  CHECK(problems_of("[plugin.amdgpu_pm4]\nwhatever = 1\n").empty());
}

TEST_CASE("config: a section of a plugin that is not to be loaded", "[config]") {
  ConfigSources sources = at_home();
  sources.set = {"plugins.load=[]", "plugin.cpu.x=1"};
  CHECK(problems_of("", sources) == std::vector<std::string>{"--set plugin.cpu.x=1: [plugin.cpu]: found a section of a "
                                                             "plugin that is not in plugins.load, which is empty"});
}
