#include "host/kiln_process.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>

using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

constexpr const char* layer = R"(
[[job]]
name = "layer"
op = "conv2d"
c = 16
h = 16
w = 16
k = 32
r = 3
s = 3
pad = 1
input = "random:1"
weights = "random:2"
verify = true
)";

Finished tune(const TemporaryFolder& folder, std::vector<std::string> more = {}, const ProcessOptions& options = {}) {
  std::vector<std::string> words = {
      "tune", folder.write("layer.toml", layer), "--json", "--device", "opengl:0", "--cache-dir", folder / "cache"};
  words.insert(words.end(), more.begin(), more.end());
  return run_kiln(words, options);
}

std::string contents(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("tune finds a winner, keeps it, and a later run uses it without building") {
  const TemporaryFolder folder;
  const Finished first = tune(folder, {"--budget", "6 s"});
  INFO(first.err << first.out);
  REQUIRE(first.status == 0);
  const auto job = first.json()["jobs"][0];
  CHECK(job["name"] == "layer");
  CHECK(job["device"] == "opengl:0");
  CHECK(job["error"].is_null());
  CHECK(job["candidates"] >= 1);
  CHECK(job["space"] >= job["candidates"]);
  CHECK(job["rejected"].empty());
  CHECK(job["gflops"] > 0);
  CHECK(job["gflops_device"] >= job["gflops"]);
  CHECK(job["baseline_gflops_device"] > 0);
  const std::string winner = job["variant"];
  CHECK_THAT(contents(folder / "cache/tuning.tsv"), Contains(winner) && Contains("winner"));

  const Finished run =
      run_kiln({"run", folder / "layer.toml", "--json", "--device", "opengl:0", "--cache-dir", folder / "cache"});
  INFO(run.err);
  REQUIRE(run.status == 0);
  const auto report = run.json();
  CHECK(report["jobs"][0]["variant"] == winner);
  CHECK(report["jobs"][0]["verified"] == true);
  CHECK(report["cache"]["builds"] == 0);

  const Finished again = tune(folder, {"--budget", "1 s"});
  REQUIRE(again.status == 0);
  CHECK(again.json()["jobs"][0]["known"] >= 1);
}

TEST_CASE("tune that is interrupted keeps what it measured") {
  const TemporaryFolder folder;
  ProcessOptions options;
  options.interrupt_when = "layer: 3 of";
  const Finished ended = tune(folder, {"--progress", "plain"}, options);
  CHECK(ended.status < 0);
  const std::string kept = contents(folder / "cache/tuning.tsv");
  CHECK(std::count(kept.begin(), kept.end(), '\n') >= 3);
  CHECK_THAT(kept, !Contains("\twinner\t"));
  const Finished next = tune(folder, {"--budget", "1 s"});
  INFO(next.err);
  REQUIRE(next.status == 0);
  CHECK(next.json()["jobs"][0]["known"] >= 2);
}

TEST_CASE("tune tells what has nothing to choose from, and refuses what is not there") {
  const TemporaryFolder folder;
  const Finished on_cpu = run_kiln(
      {"tune", folder.write("layer.toml", layer), "--json", "--device", "cpu", "--cache-dir", folder / "cache"});
  CHECK(on_cpu.status == 0);
  CHECK_THAT(std::string(on_cpu.json()["jobs"][0]["error"]), Contains("no variants"));
  const Finished nowhere =
      run_kiln({"tune", folder / "layer.toml", "--device", "opengl:77", "--cache-dir", folder / "cache"});
  CHECK(nowhere.status == 3);
  CHECK_THAT(nowhere.err, Contains("opengl:77"));
  CHECK(run_kiln({"tune", folder / "layer.toml", "--budget", "soon", "--cache-dir", folder / "cache"}).status == 2);
}
