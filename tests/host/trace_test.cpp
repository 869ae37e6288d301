#include "host/kiln_process.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <map>

using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

constexpr const char* tiny = R"(
[[job]]
name = "tiny"
op = "conv2d"
c = 3
h = 32
w = 32
k = 16
r = 3
s = 3
pad = 1
input = "random:1"
weights = "random:2"
)";

}  // namespace

TEST_CASE("--trace writes Chrome trace events of every stage of every run") {
  const TemporaryFolder folder;
  const Finished finished = run_kiln({"run", folder.write("tiny.toml", tiny), "--device", "cpu", "--repeat", "4",
                                      "--trace", folder / "trace.json", "--cache-dir", folder / "cache"});
  INFO(finished.err);
  REQUIRE(finished.status == 0);
  std::ifstream file(folder / "trace.json");
  const auto json = nlohmann::json::parse(file);
  std::map<std::uint64_t, std::map<std::string, std::pair<double, double>>> by_job;
  for (const auto& event : json.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const std::string name = event.at("cat") == "job" ? "job" : event.at("name");
    const double begin = event.at("ts");
    const double length = event.at("dur");
    by_job[event.at("args").at("fence")][name] = {begin, begin + length};
  }
  CHECK(by_job.size() == 4);
  for (const auto& [fence, stages] : by_job) {
    CHECK(stages.size() == 7);
    for (const auto& [name, span] : stages) {
      INFO("run " << fence << ", " << name);
      CHECK(span.first >= stages.at("job").first);
      CHECK(span.second <= stages.at("job").second + 1e-6);
    }
    CHECK(stages.at("device").first >= stages.at("upload").second);
    CHECK(stages.at("readback").first >= stages.at("device").second);
  }
}

TEST_CASE("--trace to a file that cannot be written is an error, and only `run` takes it") {
  const TemporaryFolder folder;
  const Finished finished = run_kiln({"run", folder.write("tiny.toml", tiny), "--device", "cpu", "--trace",
                                      folder / "absent" / "trace.json", "--cache-dir", folder / "cache"});
  CHECK(finished.status == 1);
  CHECK_THAT(finished.err, Contains("--trace") && Contains("absent"));
  const Finished refused = run_kiln({"devices", "--trace", folder / "t.json", "--cache-dir", folder / "cache"});
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, Contains("takes no --trace"));
}
