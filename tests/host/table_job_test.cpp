// Jobs that stand in a table: one a row, through the whole command.
#include "host/kiln_process.hpp"

#include "support/test_length.hpp"

#include <catch2/catch.hpp>

#include <fstream>

using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

constexpr const char* rows = R"(name,n,c,h,w,k,r,s,stride,pad,groups
wide,1,3,30,40,8,5,3,2,1,1
depthwise,2,6,15,14,6,3,3,1,1,6
)";

constexpr const char* rows_job = R"(
[[job]]
name = "net"
table = "rows.csv"
input = "random:1"
weights = "random:2"
verify = true
output = "out.npy"
)";

std::size_t rows_of(const std::filesystem::path& table) {
  std::ifstream file(table);
  std::size_t lines = 0;
  for (std::string line; std::getline(file, line);) lines += line.empty() ? 0 : 1;
  REQUIRE(lines > 1);
  return lines - 1;
}

}  // namespace

TEST_CASE("the rows of a table run as jobs of their own, on both devices") {
  const TemporaryFolder folder;
  folder.write("rows.csv", rows);
  const auto file = folder.write("table.toml", rows_job);
  for (const char* device : {"cpu", "opengl:0"}) {
    const Finished finished = run_kiln({"run", file, "--json", "--device", device, "--cache-dir", folder / "cache"},
                                       {.folder = folder.path()});
    INFO(device << finished.err << finished.out);
    REQUIRE(finished.status == 0);
    const auto json = finished.json();
    REQUIRE(json["jobs"].size() == 2);
    for (const auto& one : json["jobs"]) {
      CHECK(one["verified"] == true);
      CHECK(one["device"]["id"] == device);
    }
    CHECK(json["jobs"][0]["name"] == "net/wide");
    CHECK(json["jobs"][1]["name"] == "net/depthwise");
    CHECK(json["jobs"][0]["program"]["keys"] != json["jobs"][1]["program"]["keys"]);
    CHECK(std::filesystem::remove(folder / "out-wide.npy"));
    CHECK(std::filesystem::remove(folder / "out-depthwise.npy"));
  }
}

TEST_CASE("every layer of three networks is verified on both devices") {
  if (!is_long()) {
    WARN("skipped: the long form's");
    return;
  }
  const TemporaryFolder folder;
  for (const std::string network : {"resnet50", "mobilenet_v2", "vgg16"}) {
    const std::string config = KILN_SOURCE_DIR "/configs/" + network;
    for (const char* device : {"cpu", "opengl:0"}) {
      // A line a job: a process that says nothing for long is taken for one that hangs.
      const Finished finished = run_kiln({"run", config + ".toml", "--json", "--device", device, "--progress", "plain",
                                          "--cache-dir", folder / "cache"});
      INFO(network << " on " << device << finished.err << finished.out);
      CHECK(finished.status == 0);
      const auto json = finished.json();
      CHECK(json["jobs"].size() == rows_of(config + ".csv"));
      for (const auto& one : json["jobs"]) {
        INFO(one["name"]);
        CHECK(one["verified"] == true);
        CHECK(one["device"]["id"] == device);
      }
    }
  }
}
