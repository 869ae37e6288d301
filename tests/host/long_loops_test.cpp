// A user's kernel whose loops llvmpipe would end: `kiln run` says so.
#include "host/kiln_process.hpp"

#include "data/npy.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

constexpr const char* kernel = R"(#version 430
layout(local_size_x = 1) in;
layout(std430, binding = 0) buffer Y { float y[]; };
void main() {
  float sum = 0.0;
  for (int i = 0; i < SIDE; ++i)
    for (int j = 0; j < SIDE; ++j) sum += y[j];
  y[0] = sum;
}
)";

struct LoopsPlace {
  TemporaryFolder folder;

  LoopsPlace() {
    folder.write("square.comp", kernel);
    REQUIRE(kiln::data::write_npy(folder / "y.npy", *kiln::HostTensor::create(kiln::DType::f32, {1000}).value()).ok());
  }
  Finished run(const std::string& side, std::vector<std::string> words) {
    const auto file = folder.write("job.toml", R"(
[[job]]
name = "mine"
op = "kernel"
source = "square.comp"
constants = { SIDE = )" + side + R"( }
bindings = [ { inout = "y.npy" } ]
grid = [1, 1, 1]
)");
    words.insert(words.begin(), {"run", file, "--cache-dir", folder / "cache"});
    return run_kiln(words);
  }
  // The notes on loops, beside which there may be others: a device that is not usable.
  std::vector<std::string> notes(const std::string& side, bool& in_software) {
    const Finished finished = run(side, {"--json", "--repeat", "3"});
    INFO(finished.err << finished.out);
    REQUIRE(finished.status == 0);
    const auto job = finished.json()["jobs"][0];
    in_software = job["device"]["kind"] == "software";
    std::vector<std::string> found;
    for (const auto& note : job["notes"]) {
      if (note.get<std::string>().find("65,535") != std::string::npos) found.push_back(note);
    }
    return found;
  }
};

}  // namespace

TEST_CASE("a kernel whose loops are too long for a device in software is run, and that is said once") {
  LoopsPlace place;
  bool in_software = false;
  const std::vector<std::string> notes = place.notes("300", in_software);
  REQUIRE(notes.size() == (in_software ? 1u : 0u));
  const Finished again = place.run("300", {});  // from the cache, in words
  INFO(again.err << again.out);
  CHECK(again.status == 0);
  if (in_software) {
    CHECK_THAT(notes[0], Contains("square.comp, line 6: ") && Contains("90,598 times"));
    CHECK_THAT(again.out, Contains("note    mine: kernel ") && Contains("square.comp, line 6: "));
  } else {
    CHECK_THAT(again.out, !Contains("65,535"));
  }
}

TEST_CASE("a kernel whose loops are short is run without a word on them") {
  LoopsPlace place;
  bool in_software = false;
  CHECK(place.notes("3", in_software).empty());
  CHECK_THAT(place.run("3", {}).out, !Contains("65,535"));
}
