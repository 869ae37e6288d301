// Where a value stands, how a problem tells it, and the order of problems.
#include "core/config/config_fixture.hpp"

#include <memory>

using namespace kiln;
using namespace kiln::test;

namespace {

std::string told_place(const ConfigPlace& place) { return ConfigProblem{place, "m"}.text(); }

}  // namespace

TEST_CASE("config: the place of a key of a job, or of what it is in", "[config]") {
  const Config config = read_valid(R"([[job]]
name = "k"
op = "kernel"
source = "k.comp"
grid = [1, 2]
bindings = [ { input = "x.npy" },
             { output = "y.npy", shape = [4, 5] } ]
)");
  REQUIRE(config.jobs.size() == 1);
  const JobConfig& job = config.jobs[0];
  const std::pair<const char*, const char*> places[] = {
      {"name", "test.toml:2:8: m"},
      {"grid", "test.toml:5:8: m"},
      {"grid[0]", "test.toml:5:9: m"},
      {"grid[1]", "test.toml:5:12: m"},
      {"grid[2]", "test.toml:5:8: m"},
      {"bindings[0].input", "test.toml:6:24: m"},
      {"bindings[0].dtype", "test.toml:6:14: m"},
      {"bindings[1].shape[1]", "test.toml:7:46: m"},
      {"bindings[1].shape[2].x", "test.toml:7:42: m"},
      {"bindings[2].shape[1]", "test.toml:6:12: m"},
      {"nothing", "test.toml:1:1: m"},
      {"nothing[3].at.all", "test.toml:1:1: m"},
      {"", "test.toml:1:1: m"},
  };
  for (const auto& [key, place] : places) {
    INFO(key);
    CHECK(told_place(job.place_of(key)) == place);
  }
  JobConfig without = job;
  without.places.reset();
  CHECK(told_place(without.place_of("grid[1]")) == "test.toml:1:1: m");
}

TEST_CASE("config: the place of a key of a section, or the key where nothing set it", "[config]") {
  ConfigSources sources = at_home();
  sources.set = {"cache.name=x"};
  const Config config = read_valid("[cache]\npolicy = \"lru\"\n", sources);
  CHECK(told_place(config.place_of("cache.policy")) == "test.toml:2:10: m");
  CHECK(told_place(config.place_of("cache.name")) == "--set cache.name=x: m");
  CHECK(told_place(config.place_of("cache.max_disk")) == "cache.max_disk: m");
  CHECK(told_place(config.place_of("no.such_key")) == "no.such_key: m");
  CHECK(told_place(Config{}.place_of("cache.policy")) == "cache.policy: m");
}

TEST_CASE("config: a problem as text, and when two are the same", "[config]") {
  CHECK(ConfigProblem{{}, "m"}.text() == "m");
  CHECK(ConfigProblem{{"f"}, "m"}.text() == "f: m");
  CHECK(ConfigProblem{{"f", 3, 4}, "m"}.text() == "f:3:4: m");
  const ConfigProblem one{{"f", 3, 4}, "m"};
  CHECK(one == ConfigProblem{{"f", 3, 4}, "m"});
  CHECK_FALSE(one == ConfigProblem{{"g", 3, 4}, "m"});
  CHECK_FALSE(one == ConfigProblem{{"f", 2, 4}, "m"});
  CHECK_FALSE(one == ConfigProblem{{"f", 3, 5}, "m"});
  CHECK_FALSE(one == ConfigProblem{{"f", 3, 4}, "n"});
}

TEST_CASE("config: problems of the first file stand first, those outside files last, each once", "[config]") {
  std::vector<ConfigProblem> problems{
      {{"KILN_LOG"}, "z"},         {{"b.toml", 1, 1}, "m"},     {{"a.toml", 9, 1}, "m"},
      {{"first.toml", 5, 3}, "m"}, {{"KILN_LOG"}, "z"},         {{"--set a"}, "a"},
      {{"first.toml", 5, 1}, "m"}, {{"first.toml", 4, 9}, "m"}, {{"first.toml", 5, 1}, "n"},
      {{"first.toml", 5, 1}, "m"}, {{"a.toml", 10, 1}, "m"},
  };
  sort_problems(problems, "first.toml");
  CHECK(texts(problems) == std::vector<std::string>{"first.toml:4:9: m", "first.toml:5:1: m", "first.toml:5:1: n",
                                                    "first.toml:5:3: m", "a.toml:9:1: m", "a.toml:10:1: m",
                                                    "b.toml:1:1: m", "KILN_LOG: z", "--set a: a"});
  sort_problems(problems, "b.toml");
  REQUIRE(problems.size() == 9);
  CHECK(problems[0].text() == "b.toml:1:1: m");
  CHECK(problems[1].text() == "a.toml:9:1: m");
}

TEST_CASE("config: the nearest key may be of another section only if it is spelled nearly alike", "[config]") {
  const std::pair<const char*, const char*> nearest[] = {
      {"cache.polcy", "cache.policy"},       {"executor.max_memory", "cache.max_memory"}, {"policy", "cache.policy"},
      {"selector.polcy", "selector.policy"}, {"cache.in_flight", "executor.in_flight"},   {"log.lvl", "log.level"},
      {"cache.nmae", "cache.name"},
  };
  for (const auto& [typed, key] : nearest) {
    ConfigSources sources = at_home();
    sources.set = {std::string(typed) + "=1"};
    CHECK(texts(read_text("", sources).problems) ==
          std::vector<std::string>{"--set " + std::string(typed) + "=1: " + typed + ": unknown key; nearest: " + key});
  }
}

TEST_CASE("config: the nearest section is shown as it is written", "[config]") {
  const std::pair<const char*, const char*> sections[] = {
      {"[cahce]", "test.toml:1:2: [cahce]: unknown section; nearest: [cache]"},
      {"[plugn]", "test.toml:1:2: [plugn]: unknown section; nearest: [plugin.NAME]"},
      {"[[jbo]]", "test.toml:1:3: [jbo]: unknown section; nearest: [[job]]"},
      {"[[pipelien]]", "test.toml:1:3: [pipelien]: unknown section; nearest: [[pipeline]]"},
      {"in_flight = 3", "test.toml:1:1: in_flight: unknown key outside the sections; nearest: executor.in_flight"},
  };
  for (const auto& [text, problem] : sections) {
    CHECK(texts(read_text(std::string(text) + "\n").problems) == std::vector<std::string>{problem});
  }
}
