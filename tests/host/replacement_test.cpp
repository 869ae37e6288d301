#include "host/kiln_process.hpp"

#include <catch2/catch.hpp>

using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

constexpr const char* tiny = R"(
[[job]]
name = "tiny"
op = "conv2d"
c = 3
h = 16
w = 16
k = 4
r = 3
s = 3
pad = 1
input = "random:1"
weights = "random:2"
verify = true
)";

}  // namespace

TEST_CASE("cache, executor, selector and generator are each replaced by a name in TOML") {
  const TemporaryFolder folder;
  const auto file = folder.write("tiny.toml", tiny);
  const std::string path = KILN_PLUGIN_DIR ":" KILN_FIXTURE_DIR;
  for (const char* what : {"cache", "executor", "selector", "generator"}) {
    const std::string name = std::string("fixture_") + what;
    const Finished finished = run_kiln({"run", file, "--json", "--cache-dir", folder / "cache", "--plugin-path", path,
                                        "--device", "cpu", "--set", std::string(what) + ".name=" + name, "--set",
                                        "plugins.load=[\"cpu\", \"dynamic_shaders\", \"" + name + "\"]"});
    INFO(what << finished.err << finished.out);
    REQUIRE(finished.status == 0);
    CHECK(finished.json()["jobs"][0]["verified"] == true);
  }
}

TEST_CASE("a name that nobody registered is told with those that are") {
  const TemporaryFolder folder;
  const Finished finished = run_kiln(
      {"run", folder.write("tiny.toml", tiny), "--cache-dir", folder / "cache", "--set", "executor.name=torus"});
  CHECK(finished.status == 2);
  CHECK_THAT(finished.err, Contains("'torus'") && Contains("'ring'"));
}
