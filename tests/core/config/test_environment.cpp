// What is kept of a process's environment, the folders that it names, and paths with "~".
#include "core/config/config_fixture.hpp"

#include "config/environment.hpp"

using namespace kiln;
using namespace kiln::test;
using config::Environment;

TEST_CASE("config::environment: HOME, XDG_* and KILN_* are kept, as they are", "[config]") {
  const char* const variables[] = {"HOME=/h",  "PATH=/bin", "XDG_CACHE_HOME=/c", "KILN_LOG=", "KILN_X=a=b", "HOME_X=1",
                                   "XDG=1",    "KILN=1",    "MY_KILN_LOG=1",     "NO_VALUE",  "HOME",       "KILN_Y",
                                   "kiln_z=1", "=1",        "XDG_Z=z",           nullptr};
  CHECK(configuration_environment(variables) ==
        Environment{{"HOME", "/h"}, {"XDG_CACHE_HOME", "/c"}, {"KILN_LOG", ""}, {"KILN_X", "a=b"}, {"XDG_Z", "z"}});
  const char* const none[] = {nullptr};
  CHECK(configuration_environment(none).empty());
  CHECK(configuration_environment(nullptr).empty());
}

TEST_CASE("config::environment: empty values count as not set, and relative homes", "[config]") {
  CHECK(config::set_variables({{"HOME", "h"},
                               {"XDG_CACHE_HOME", "./c"},
                               {"XDG_STATE_HOME", "s"},
                               {"XDG_CONFIG_HOME", "~/c"},
                               {"KILN_LOG", ""},
                               {"KILN_CACHE_DIR", "relative"}}) == Environment{{"KILN_CACHE_DIR", "relative"}});
  const Environment absolute{
      {"HOME", "/h"}, {"XDG_CACHE_HOME", "/c"}, {"XDG_STATE_HOME", "/s"}, {"XDG_CONFIG_HOME", "/"}};
  CHECK(config::set_variables(absolute) == absolute);
}

TEST_CASE("config::environment: default folders by XDG, else below HOME", "[config]") {
  const Environment home{{"HOME", "/h"}},
      xdg{{"XDG_CACHE_HOME", "/c/"}, {"XDG_STATE_HOME", "/s"}, {"XDG_CONFIG_HOME", "/x"}};
  CHECK(config::default_path(home, config::cache_place) == "/h/.cache/kiln");
  CHECK(config::default_path(home, config::key_place) == "/h/.local/state/kiln/key");
  CHECK(config::default_path(xdg, config::cache_place) == "/c/kiln");
  CHECK(config::default_path(xdg, config::key_place) == "/s/kiln/key");
  CHECK(config::default_path({}, config::cache_place).empty());
  using Folders = std::vector<std::filesystem::path>;
  CHECK(config::trust_folders(home) == Folders{"/etc/kiln", "/h/.config/kiln"});
  CHECK(config::trust_folders(xdg) == Folders{"/etc/kiln", "/x/kiln"});
  CHECK(config::trust_folders({}) == Folders{"/etc/kiln"});
}

TEST_CASE("config::environment: a path is made absolute", "[config]") {
  const Environment set{{"HOME", "/h"}};
  const std::pair<const char*, const char*> paths[] = {
      {"/", "/"},       {"//a//b/", "/a/b"}, {"/a/../b", "/b"}, {"~", "/h"},     {"~/", "/h"},   {"~/x", "/h/x"},
      {"~/x/", "/h/x"}, {"~/..", "/"},       {"x", "/base/x"},  {"./", "/base"}, {"../x", "/x"}, {"a~", "/base/a~"}};
  for (const auto& [text, path] : paths) {
    INFO(text);
    const Result<std::string> expanded = config::expanded_path(text, set, "/base");
    REQUIRE(expanded);
    CHECK(*expanded == path);
  }
  const Result<std::string> other = config::expanded_path("~you", set, "/base");
  REQUIRE_FALSE(other);
  CHECK(other.error().code == StatusCode::invalid_argument);
  CHECK(other.error().message == "found \"~you\", expected \"~/\" or a path without a leading \"~\"");
  const Result<std::string> homeless = config::expanded_path("~/x", {}, "/base");
  REQUIRE_FALSE(homeless);
  CHECK(homeless.error().code == StatusCode::not_found);
}

TEST_CASE("config::environment: the folder of a user's state is that of the key", "[config]") {
  CHECK(user_state_folder() == user_key_file().parent_path());
  const std::vector<std::filesystem::path> folders = user_trust_folders();
  REQUIRE_FALSE(folders.empty());
  CHECK(folders.front() == "/etc/kiln");
  CHECK(folders == config::trust_folders(config::set_variables(configuration_environment())));
}

TEST_CASE("config: what --set cannot reach", "[config]") {
  const std::pair<const char*, const char*> wrong[] = {
      {"job=1", "job: jobs can be set only in a configuration file"},
      {"jobs=1", "jobs: unknown key; nearest: "},
      {"cache.remote=1", "cache.remote: remotes can be set only in a configuration file"},
      {"cache.remote.url=x", "cache.remote.url: remotes can be set only in a configuration file"},
      {"cache.remotes=x", "cache.remotes: unknown key; nearest: cache."},
      {"plugin.x=1", "plugin.x: expected plugin.NAME.KEY"},
      {"plugin..x=1", "plugin..x: expected plugin.NAME.KEY"},
      {"plugin.x.=1", "plugin.x.: expected plugin.NAME.KEY"},
      {"plugin.x.y.z=1", "plugin.x.y.z: expected plugin.NAME.KEY"},
      {"plugin.x.y={}", "plugin.x.y: found a table, expected a boolean, a number, a text or an array of texts"},
      {"cache.name='a'\nb=1", "cache.name: not valid TOML: more than one value"},
  };
  for (const auto& [argument, message] : wrong) {
    INFO(argument);
    ConfigSources sources = at_home();
    sources.set = {argument};
    const ConfigReading reading = read_text("", sources);
    REQUIRE(reading.problems.size() == 1);
    CHECK_THAT(reading.problems[0].message, Catch::StartsWith(message));
  }
  ConfigSources sources = at_home();
  sources.set = {"cache.name=1\nb=2", "plugin.a.b=3"};
  const Config config = read_valid("", sources);
  CHECK(config.cache.name == "1\nb=2");
  CHECK(config.plugin.at("a").at("b").value == ConfigValue(std::int64_t{3}));
}
