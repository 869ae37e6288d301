// The learning selector on the machine's own devices: which of them serves the layers of a table.
#include "kiln_process.hpp"

#include <catch2/catch.hpp>

using namespace kiln::test;
using Catch::Matchers::Matches;

namespace {

// Four layers of ResNet-50 that oneDNN computes some ten times faster than a software rasterizer.
constexpr const char* layers = R"(name,n,c,h,w,k,r,s,stride,pad,groups
res2_1x1a,1,64,56,56,64,1,1,1,0,1
res2_1x1b,1,64,56,56,256,1,1,1,0,1
res2_1x1c,1,256,56,56,64,1,1,1,0,1
res4_1x1b,1,256,14,14,1024,1,1,1,0,1
)";

constexpr const char* table_job = R"([plugins]
load = ["cpu", "opengl", "dynamic_shaders"]

[selector]
serve_while_building = false

[[job]]
table = "layers.csv"
input = "random:1"
weights = "random:2"
)";

}  // namespace

TEST_CASE("selection: after its looks every layer of a table goes to the CPU, and explain names the factor",
          "[host][selector]") {
  const TemporaryFolder folder;
  folder.write("layers.csv", layers);
  const std::string config = folder.write("jobs.toml", table_job);
  const std::string cache = folder / "cache";
  int looks = 0, elsewhere = 0, others = 0;
  bool all_on_cpu = false;  // in the last process
  // Where others have the cores a look may come late: what such a one saw is not learned from.
  for (int process = 0; process < 6 || (process < 12 && !all_on_cpu); ++process) {
    const Finished finished = run_kiln({"run", config, "--json", "--repeat", "10", "--cache-dir", cache});
    INFO(finished.err);
    REQUIRE(finished.status == 0);
    all_on_cpu = true;
    const auto jobs = finished.json()["jobs"];
    REQUIRE(jobs.size() == 4);
    for (const auto& job : jobs) {
      const auto because = job["selected_because"].get<std::string>();
      CAPTURE(process, job["name"], because);
      const bool on_cpu = job["device"]["id"] == "cpu";
      all_on_cpu = all_on_cpu && on_cpu;
      if (because.starts_with("exploration run ")) {
        looks += on_cpu ? 0 : 1;
        continue;
      }
      ++others;
      elsewhere += on_cpu ? 0 : 1;
    }
  }
  CHECK(looks >= 1);
  CHECK(looks <= 12);     // three a layer at most
  CHECK(elsewhere <= 1);  // the machine may have taken the cores away for a whole job
  CHECK(others >= 12);
  CHECK(all_on_cpu);

  const Finished explained =
      run_kiln({"selector", "explain", config, "--json", "--repeat", "10", "--cache-dir", cache});
  INFO(explained.out);
  REQUIRE(explained.status == 0);
  const auto jobs = explained.json()["jobs"];
  REQUIRE(jobs.size() == 4);
  for (const auto& job : jobs) {
    CHECK(job["device"] == "cpu");
    REQUIRE(job["candidates"].size() == 2);
    std::string of_opengl;
    for (const auto& words : job["words"]) {
      if (words.get<std::string>().starts_with("opengl:0: ")) of_opengl = words;
    }
    CHECK_THAT(of_opengl, Matches(".*; x[0-9]+\\.[0-9] of the chosen"));
    double ms[2] = {};
    for (const auto& candidate : job["candidates"])
      ms[candidate["device"] == "cpu" ? 0 : 1] = candidate["ms"]["cost"].get<double>();
    CHECK(ms[1] > ms[0]);
  }
}
