// Defaults < file < environment < command line, and the origin that each value keeps.
#include "core/config/config_fixture.hpp"

#include "config/key_table.hpp"

#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

using namespace kiln;
using namespace kiln::test;

namespace {

std::vector<std::string> problems_of_set(const std::string& argument) {
  ConfigSources sources = at_home();
  sources.set = {argument};
  return texts(read_text("", sources).problems);
}

Config with_set(const std::vector<std::string>& arguments, std::string_view text = "") {
  ConfigSources sources = at_home();
  sources.set = arguments;
  return read_valid(text, sources);
}

}  // namespace

TEST_CASE("config: nothing said gives the defaults", "[config]") {
  const Config config = read_valid("");
  const Config plain;
  CHECK(config.plugins.load == plain.plugins.load);
  CHECK(config.plugins.required == std::vector<std::string>{"cpu"});
  CHECK(config.device.prefer == "auto");
  CHECK(config.device.fallback == Fallback::report);
  CHECK(config.cache.directory == "/home/person/.cache/kiln");
  CHECK(config.cache.key_file == "/home/person/.local/state/kiln/key");
  CHECK(config.cache.max_memory == 50ull << 20);
  CHECK(config.executor.timeout == std::chrono::seconds(10));
  CHECK(config.selector.serve_while_building);
  CHECK(config.log_level == LogLevel::warning);
  CHECK(config.jobs.empty());
  CHECK(config.plugin.empty());
  for (const config::KeyEntry& key : config::key_table()) {
    INFO(key.name);
    REQUIRE(config.origins.count(std::string(key.name)) == 1);
    CHECK(config.origins.at(std::string(key.name)).kind == OriginKind::built_in);
    CHECK(config.origins.at(std::string(key.name)).detail.empty());
  }
  CHECK(config.origins.size() == config::key_table().size());
}

TEST_CASE("config: each source stands above the one before", "[config]") {
  const char* file = "[cache]\ndirectory = \"/from/file\"\npolicy = \"sieve\"\n";
  ConfigSources sources = at_home();
  CHECK(read_valid("", sources).cache.directory == "/home/person/.cache/kiln");

  Config config = read_valid(file, sources);
  CHECK(config.cache.directory == "/from/file");
  CHECK(config.origins.at("cache.directory").kind == OriginKind::file);
  CHECK(config.origins.at("cache.directory").detail == "test.toml:2:1");
  CHECK(config.origins.at("cache.policy").detail == "test.toml:3:1");
  CHECK(config.origins.at("cache.name").kind == OriginKind::built_in);

  sources.environment["KILN_CACHE_DIR"] = "/from/environment";
  config = read_valid(file, sources);
  CHECK(config.cache.directory == "/from/environment");
  CHECK(config.origins.at("cache.directory").kind == OriginKind::environment);
  CHECK(config.origins.at("cache.directory").detail == "KILN_CACHE_DIR");

  sources.set = {"cache.directory=/from/set", "cache.policy=cost"};
  config = read_valid(file, sources);
  CHECK(config.cache.directory == "/from/set");
  CHECK(config.cache.policy == "cost");
  CHECK(config.origins.at("cache.directory").kind == OriginKind::command_line);
  CHECK(config.origins.at("cache.directory").detail == "--set cache.directory");

  sources.cache_directory = "/from/option";
  config = read_valid(file, sources);
  CHECK(config.cache.directory == "/from/option");
  CHECK(config.origins.at("cache.directory").detail == "--cache-dir");
}

TEST_CASE("config: environment variables", "[config]") {
  ConfigSources sources = at_home();
  sources.environment["KILN_PLUGIN_PATH"] = "/a:~/b::/c";
  sources.environment["KILN_KEY_FILE"] = "/keys/key";
  sources.environment["KILN_LOG"] = "debug";
  const Config config = read_valid("[log]\nlevel = \"error\"\n", sources);
  CHECK(config.plugins.path == std::vector<std::filesystem::path>{"/a", "/home/person/b", "/c"});
  CHECK(config.cache.key_file == "/keys/key");
  CHECK(config.log_level == LogLevel::debug);
  CHECK(config.origins.at("plugins.path").detail == "KILN_PLUGIN_PATH");
  CHECK(config.origins.at("log.level").detail == "KILN_LOG");

  sources.plugin_path = "/d:/e/";
  sources.log_level = "off";
  const Config above = read_valid("", sources);
  CHECK(above.plugins.path == std::vector<std::filesystem::path>{"/d", "/e"});
  CHECK(above.origins.at("plugins.path").detail == "--plugin-path");
  CHECK(above.log_level == LogLevel::off);
  CHECK(above.origins.at("log.level").detail == "--log");
}

TEST_CASE("config: an empty variable counts as unset", "[config]") {
  ConfigSources sources = at_home();
  for (const char* name :
       {"KILN_CACHE_DIR", "KILN_PLUGIN_PATH", "KILN_KEY_FILE", "KILN_LOG", "KILN_CONFIG", "XDG_CACHE_HOME"}) {
    sources.environment[name] = "";
  }
  const ConfigReading reading = read_config(sources);
  CHECK(reading.problems.empty());
  CHECK(reading.config.cache.directory == "/home/person/.cache/kiln");
  CHECK(reading.config.plugins.path.empty());
}

TEST_CASE("config: a bad variable is a problem that names it", "[config]") {
  ConfigSources sources = at_home();
  sources.environment["KILN_LOG"] = "loud";
  sources.environment["KILN_CACHE_DIR"] = "~nobody/cache";
  CHECK(texts(read_text("", sources).problems) ==
        std::vector<std::string>{
            "KILN_CACHE_DIR: cache.directory: found \"~nobody/cache\", expected \"~/\" or a path without a leading "
            "\"~\"",
            "KILN_LOG: log.level: found \"loud\", expected one of debug, info, warning, error, off; nearest: off"});
}

TEST_CASE("config: the default folders follow XDG, where it is absolute", "[config]") {
  ConfigSources sources = at_home();
  sources.environment["XDG_CACHE_HOME"] = "/xdg/cache";
  sources.environment["XDG_STATE_HOME"] = "/xdg/state/";
  Config config = read_valid("", sources);
  CHECK(config.cache.directory == "/xdg/cache/kiln");
  CHECK(config.cache.key_file == "/xdg/state/kiln/key");
  CHECK(config.origins.at("cache.directory").kind == OriginKind::built_in);

  sources.environment["XDG_CACHE_HOME"] = "relative";
  CHECK(read_valid("", sources).cache.directory == "/home/person/.cache/kiln");
}

TEST_CASE("config: without a home there is no folder and no key, and the rest is valid", "[config]") {
  using Variables = std::map<std::string, std::string>;
  for (const Variables& environment :
       {Variables{}, Variables{{"HOME", ""}}, Variables{{"HOME", "home/person"}},
        Variables{{"HOME", "."}, {"XDG_CACHE_HOME", "cache"}, {"XDG_STATE_HOME", "./state"}}}) {
    ConfigSources sources;
    sources.environment = environment;
    const Config config = read_valid("[cache]\npolicy = \"sieve\"\n", sources);
    CHECK(config.cache.directory.empty());
    CHECK(config.cache.key_file.empty());
    CHECK(config.cache.policy == "sieve");
    const Config named = read_valid("[cache]\ndirectory = \"~/x\"\nkey_file = \"/k\"\n", sources);
    CHECK(named.cache.directory.empty());
    CHECK(named.cache.key_file == "/k");
    CHECK(texts(read_text("[metrics]\nfile = \"~/x\"\n", sources).problems) ==
          std::vector<std::string>{"test.toml:2:8: metrics.file: found \"~/x\", but HOME, which \"~\" "
                                   "stands for, is not set to an absolute path"});
  }
  ConfigSources sources;
  sources.environment = {{"KILN_CACHE_DIR", "/c"}, {"KILN_KEY_FILE", "/k"}};
  CHECK(read_valid("", sources).cache.directory == "/c");
  CHECK(read_valid("", sources).cache.key_file == "/k");
  sources.environment = {{"XDG_CACHE_HOME", "/c"}, {"HOME", "home"}};
  CHECK(read_valid("", sources).cache.directory == "/c/kiln");
  CHECK(read_valid("", sources).cache.key_file.empty());
}

TEST_CASE("config: a default Config has the folders that a reading of the process's environment gives", "[config]") {
  struct Variable {  // as it was when the test began
    const char* name;
    std::optional<std::string> before;
    explicit Variable(const char* of) : name(of) {
      if (const char* value = std::getenv(of)) before = value;
    }
    ~Variable() { before ? setenv(name, before->c_str(), 1) : unsetenv(name); }
  };
  const Variable restored[] = {Variable("HOME"), Variable("XDG_CACHE_HOME"), Variable("XDG_STATE_HOME"),
                               Variable("KILN_CACHE_DIR"), Variable("KILN_KEY_FILE")};
  using Variables = std::map<std::string, std::string>;
  const std::pair<Variables, std::pair<std::string, std::string>> cases[] = {
      {{{"HOME", "/home/person"}}, {"/home/person/.cache/kiln", "/home/person/.local/state/kiln/key"}},
      {{{"HOME", "/h"}, {"XDG_CACHE_HOME", "/c"}, {"XDG_STATE_HOME", "/s/"}}, {"/c/kiln", "/s/kiln/key"}},
      {{{"HOME", "/h"}, {"XDG_CACHE_HOME", "c"}}, {"/h/.cache/kiln", "/h/.local/state/kiln/key"}},
      {{{"HOME", "/h"}, {"KILN_CACHE_DIR", "/kiln/"}, {"KILN_KEY_FILE", "~/key"}}, {"/kiln", "/h/key"}},
      {{{"KILN_CACHE_DIR", "/kiln"}}, {"/kiln", ""}},
      {{{"HOME", "relative"}}, {"", ""}},
      {{}, {"", ""}}};
  for (const auto& [environment, expected] : cases) {
    for (const Variable& variable : restored) unsetenv(variable.name);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    CHECK(Config{}.cache.directory == expected.first);
    CHECK(Config{}.cache.key_file == expected.second);
    const Config read = read_config(ConfigSources{}).config;
    CHECK(read.cache.directory == expected.first);
    CHECK(read.cache.key_file == expected.second);
  }
}

TEST_CASE("config: paths are made absolute: from the file's folder, or from the working directory", "[config]") {
  const char* text = "[cache]\ndirectory = \"near/../cache/\"\nkey_file = \"~/keys/key\"\n";
  const ConfigReading reading = read_config_text(text, "/etc/kiln/kiln.toml", at_home());
  CHECK(reading.problems.empty());
  CHECK(reading.config.cache.directory == "/etc/kiln/cache");
  CHECK(reading.config.cache.key_file == "/home/person/keys/key");

  ConfigSources sources = at_home();
  sources.cache_directory = "here";
  CHECK(read_config_text(text, "/etc/kiln/kiln.toml", sources).config.cache.directory ==
        std::filesystem::current_path() / "here");
  sources.cache_directory = "~";
  CHECK(read_valid("", sources).cache.directory == "/home/person");
}

TEST_CASE("config: --set takes every type", "[config]") {
  const Config config =
      with_set({"cache.max_programs=7", "cache.max_memory=3 MiB", "cache.max_disk=\"2 GiB\"", "cache.auto_save=false",
                "selector.ema_alpha=0.25", "selector.exploration=1", "executor.timeout=250 ms",
                "device.prefer=opengl:0", "device.fallback='never'", "plugins.load=[\"cpu\", \"x\"]",
                "plugins.required=cpu", "cache.name=123", "selector.name=true", "log.level=info",
                "plugin.opengl.threads=4", "plugin.opengl.mode=fast", "cache.policy=lru", "cache.policy=cost"});
  CHECK(config.cache.max_programs == 7);
  CHECK(config.cache.max_memory == 3ull << 20);
  CHECK(config.cache.max_disk == 2ull << 30);
  CHECK_FALSE(config.cache.auto_save);
  CHECK(config.selector.ema_alpha == 0.25);
  CHECK(config.selector.exploration == 1.0);
  CHECK(config.executor.timeout == std::chrono::milliseconds(250));
  CHECK(config.device.prefer == "opengl:0");
  CHECK(config.device.fallback == Fallback::never);
  CHECK(config.plugins.load == std::vector<std::string>{"cpu", "x"});
  CHECK(config.plugins.required == std::vector<std::string>{"cpu"});
  CHECK(config.cache.name == "123");
  CHECK(config.selector.name == "true");
  CHECK(config.log_level == LogLevel::info);
  CHECK(std::get<std::int64_t>(config.plugin.at("opengl").at("threads").value) == 4);
  CHECK(std::get<std::string>(config.plugin.at("opengl").at("mode").value) == "fast");
  CHECK(config.plugin.at("opengl").at("mode").origin.detail == "--set plugin.opengl.mode");
  CHECK(config.cache.policy == "cost");
}

TEST_CASE("config: --set may hold a '=' in its value, and an empty list of folders", "[config]") {
  CHECK(with_set({"cache.name=a=b"}).cache.name == "a=b");
  CHECK(with_set({"plugins.path=/a"}).plugins.path == std::vector<std::filesystem::path>{"/a"});
  CHECK(with_set({"plugins.load=[]"}).plugins.load.empty());
}

TEST_CASE("config: a bad --set is a problem that repeats it", "[config]") {
  using Texts = std::vector<std::string>;
  CHECK(problems_of_set("cache.polcy=lru") ==
        Texts{"--set cache.polcy=lru: cache.polcy: unknown key; nearest: cache.policy"});
  CHECK(problems_of_set("policy=lru") == Texts{"--set policy=lru: policy: unknown key; nearest: cache.policy"});
  CHECK(problems_of_set("cache.policy") == Texts{"--set cache.policy: found no key and value, expected key=value"});
  CHECK(problems_of_set("=3") == Texts{"--set =3: found no key and value, expected key=value"});
  CHECK(problems_of_set("") == Texts{"--set : found no key and value, expected key=value"});
  CHECK(problems_of_set("executor.in_flight=20") ==
        Texts{"--set executor.in_flight=20: executor.in_flight: found 20, expected an integer from 1 to 16"});
  CHECK(problems_of_set("executor.in_flight=many") == Texts{"--set executor.in_flight=many: executor.in_flight: found "
                                                            "the text \"many\", expected an integer from 1 to 16"});
  CHECK(problems_of_set("cache.name=").size() == 1);
  CHECK(problems_of_set("job.name=x") ==
        Texts{"--set job.name=x: job.name: jobs can be set only in a configuration file"});
  CHECK(problems_of_set("plugin.opengl=3") == Texts{"--set plugin.opengl=3: plugin.opengl: expected plugin.NAME.KEY"});
  CHECK(problems_of_set("plugin.opengl.a.b=3").size() == 1);
  CHECK(problems_of_set("plugin.opengl.when=2024-01-31").size() == 1);
  CHECK(problems_of_set("cache.policy=[\"lru\"]").size() == 1);
  const Texts unclosed = problems_of_set("cache.policy=\"lru");
  REQUIRE(unclosed.size() == 1);
  CHECK(unclosed[0].find("--set cache.policy=\"lru: cache.policy: not valid TOML: ") == 0);
}

TEST_CASE("config: a --set cannot bring in another key by a line of its own", "[config]") {
  CHECK(problems_of_set("cache.max_programs=1\nread_only = true").size() == 1);
  CHECK(problems_of_set("device.prefer=[\"a\"]\n[cache]\nread_only = true").size() == 1);
  const std::vector<std::string> shown = problems_of_set("cache.x\ny=1");
  REQUIRE(shown.size() == 1);
  CHECK(shown[0].find('\n') == std::string::npos);
}

TEST_CASE("config: problems of file, environment and command line are told together, in this order", "[config]") {
  ConfigSources sources = at_home();
  sources.environment["KILN_LOG"] = "loud";
  sources.set = {"b.x=1", "a.x=1"};
  const std::vector<std::string> found = texts(read_text("[executor]\nin_flight = 0\n[cahce]\n", sources).problems);
  REQUIRE(found.size() == 5);
  CHECK(found[0].find("test.toml:2:13: ") == 0);
  CHECK(found[1].find("test.toml:3:2: ") == 0);
  CHECK(found[2].find("KILN_LOG: ") == 0);
  CHECK(found[3].find("--set b.x=1: ") == 0);
  CHECK(found[4].find("--set a.x=1: ") == 0);
}
