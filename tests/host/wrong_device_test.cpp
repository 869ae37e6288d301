// A device that computes wrongly, through the whole command: --verify is worth what it refuses.
#include "host/kiln_process.hpp"

#include <catch2/catch.hpp>

using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

constexpr const char* jobs = R"(
[plugins]
load = ["fixture", "fixture_generator"]
required = []

[generator]
name = "fixture_generator"

[[job]]
name = "layer"
op = "conv2d"
c = 3
h = 9
w = 8
k = 4
r = 3
s = 3
input = "random:1"
weights = "random:2"
output = "layer.npy"

[[job]]
name = "product"
op = "gemm"
m = 5
n = 6
k = 7
input = "random:3"
weights = "random:4"
output = "product.npy"
)";

Finished run_jobs(const TemporaryFolder& folder, std::vector<std::string> more) {
  std::vector<std::string> words = {"run",
                                    folder.write("jobs.toml", jobs),
                                    "--json",
                                    "--device",
                                    "fixture:0",
                                    "--repeat",
                                    "3",
                                    "--plugin-path",
                                    KILN_FIXTURE_DIR,
                                    "--cache-dir",
                                    folder / "cache"};
  words.insert(words.end(), more.begin(), more.end());
  return run_kiln(words, {.folder = folder.path()});
}

}  // namespace

TEST_CASE("a device that is wrong at the first run, at the last, or writes nothing is seen by --verify") {
  const TemporaryFolder folder;
  // The layer's runs are submissions 1 to 3; after a failure at its first the product's begin at 2, else at 4.
  const struct {
    const char* setting;
    const char* wrong;
    const char* right;
  } cases[] = {{"wrong_at=1", "layer", "product"}, {"wrong_at=3", "layer", "product"},
               {"wrong_at=4", "product", "layer"}, {"wrong_at=6", "product", "layer"},
               {"idle_at=1", "layer", "product"},  {"idle_at=6", "product", "layer"}};
  for (const auto& one : cases) {
    const Finished finished = run_jobs(folder, {"--verify", "--set", std::string("plugin.fixture.") + one.setting});
    INFO(one.setting << finished.err << finished.out);
    CHECK(finished.status == 1);
    const auto json = finished.json();
    REQUIRE(json["jobs"].size() == 2);
    for (const auto& job : json["jobs"]) {
      const bool wrong = job["name"] == one.wrong;
      CHECK(job["verified"] == !wrong);
      CHECK(job["status"] == (wrong ? "wrong_result" : "ok"));
      CHECK(std::filesystem::remove(folder / (job["name"].get<std::string>() + ".npy")) == !wrong);
    }
  }
}

TEST_CASE("the same device is verified where nothing is wrong, and nothing is claimed where nobody asked") {
  const TemporaryFolder folder;
  const Finished right = run_jobs(folder, {"--verify"});
  INFO(right.err << right.out);
  REQUIRE(right.status == 0);
  const auto right_json = right.json();
  for (const auto& job : right_json["jobs"]) CHECK(job["verified"] == true);
  const Finished unasked = run_jobs(folder, {"--set", "plugin.fixture.wrong_at=1"});
  CHECK(unasked.status == 0);
  const auto unasked_json = unasked.json();
  for (const auto& job : unasked_json["jobs"]) CHECK(job["verified"].is_null());
}
