// Each of the four interfaces replaced by a fixture's, and shown by what only the fixture's does.
#include "host/kiln_process.hpp"
#include "host/sample_jobs.hpp"

#include <catch2/catch.hpp>

using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

std::string named(const char* name) { return conv_3x3(name, {3, 16, 4}); }

// One convolution, asked for twice, with the plugin cpu and those of `load`.
nlohmann::json run_twice(const std::string& load, std::vector<std::string> more, std::string* talk = nullptr) {
  const TemporaryFolder folder;
  std::vector<std::string> words = {"run",
                                    folder.write("twice.toml", named("first") + named("second")),
                                    "--json",
                                    "--cache-dir",
                                    folder / "cache",
                                    "--plugin-path",
                                    KILN_PLUGIN_DIR ":" KILN_FIXTURE_DIR,
                                    "--set",
                                    "plugins.load=[\"cpu\", " + load + "]"};
  words.insert(words.end(), more.begin(), more.end());
  const Finished finished = run_kiln(words);
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  if (talk != nullptr) *talk = finished.err;
  const auto json = finished.json();
  REQUIRE(json["jobs"].size() == 2);
  for (const auto& job : json["jobs"]) CHECK(job["verified"] == true);
  return json;
}

}  // namespace

TEST_CASE("a plugin's cache serves: it keeps nothing, so that what was made is made again") {
  const auto replaced =
      run_twice("\"dynamic_shaders\", \"fixture_cache\"", {"--device", "cpu", "--set", "cache.name=fixture_cache"});
  CHECK(replaced["cache"]["misses"] == 2);
  CHECK(replaced["jobs"][1]["program"]["tier"] == "library");
  const auto own = run_twice("\"dynamic_shaders\", \"fixture_cache\"", {"--device", "cpu"});
  CHECK(own["cache"]["misses"] == 1);
  CHECK(own["jobs"][1]["program"]["tier"] == "memory");
}

TEST_CASE("a plugin's executor serves: it says so at each submission") {
  const std::string line = ": ran inside submit()";
  std::string talk;
  run_twice("\"dynamic_shaders\", \"fixture_executor\"",
            {"--device", "cpu", "--log", "info", "--set", "executor.name=fixture_executor"}, &talk);
  CHECK_THAT(talk, Contains(line));
  run_twice("\"dynamic_shaders\", \"fixture_executor\"", {"--device", "cpu", "--log", "info"}, &talk);
  CHECK_THAT(talk, !Contains(line));
}

TEST_CASE("a plugin's selector serves: of two devices it picks the last") {
  // The fixture's generator writes for both devices, and no other is there: the fixture compiles no shaders.
  const auto with = [](const std::string& selector) {
    return run_twice("\"fixture\", \"fixture_selector\", \"fixture_generator\"",
                     {"--set", "generator.name=fixture_generator", "--set", "selector.name=" + selector});
  };
  const auto last = with("fixture_selector");
  for (const auto& job : last["jobs"]) {
    CHECK(job["device"]["id"] == "fixture:0");
    CHECK(job["selected_because"] == "the last of 2 candidates");
  }
  const auto first = with("fixed");
  for (const auto& job : first["jobs"]) CHECK(job["device"]["id"] == "cpu");
}

TEST_CASE("a plugin's generator serves: the variant is its own") {
  const auto replaced = run_twice("\"dynamic_shaders\", \"fixture_generator\"",
                                  {"--device", "cpu", "--set", "generator.name=fixture_generator"});
  for (const auto& job : replaced["jobs"]) CHECK(job["variant"] == "fixture/forward");
  const auto own = run_twice("\"dynamic_shaders\"", {"--device", "cpu"});
  for (const auto& job : own["jobs"]) CHECK(job["variant"] == "onednn");
}

TEST_CASE("a name that nobody registered is told with those that are") {
  const TemporaryFolder folder;
  const Finished finished = run_kiln({"run", folder.write("tiny.toml", named("tiny")), "--cache-dir", folder / "cache",
                                      "--set", "executor.name=torus"});
  CHECK(finished.status == 2);
  CHECK_THAT(finished.err, Contains("'torus'") && Contains("'ring'"));
}
