// `kiln tune` on a kernel of the user's own that leaves parameters open.
#include "host/kiln_process.hpp"

#include "data/npy.hpp"

#include <catch2/catch.hpp>

#include <filesystem>

using namespace kiln;
using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

// MODE 0 and 1 compute y = A * x + y in two ways; 2 is wrong in one element, 3 does not compile.
constexpr const char* kernel = R"(#version 430
layout(local_size_x = TILE) in;
layout(std430, binding = 0) readonly buffer X { float x[]; };
layout(std430, binding = 1) buffer Y { float y[]; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i >= N) return;
#if MODE == 0
  y[i] = A * x[i] + y[i];
#elif MODE == 1
  y[i] += x[i] * A;
#elif MODE == 2
  y[i] = A * x[i] + y[i] + (i == 77u ? 1.0 : 0.0);
#else
  this is no GLSL
#endif
}
)";

constexpr const char* job = R"(
[[job]]
name = "mine"
op = "kernel"
source = "mine.comp"
constants = { A = 2.5, N = 4000 }
tune = { TILE = [16, 64], MODE = [0, 1, 2, 3] }
bindings = [ { input = "x.npy" }, { inout = "y.npy" } ]
grid = ["(N + TILE - 1) / TILE"]
)";

struct Place {
  TemporaryFolder folder;

  Place() {
    folder.write("mine.comp", kernel);
    for (const char* name : {"x.npy", "y.npy"}) {
      auto tensor = HostTensor::create(DType::f32, {4000});
      const std::span<float> values = (*tensor)->as<float>();
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 97) + (*name == 'x' ? 1 : 2);
      REQUIRE(data::write_npy(folder / name, **tensor).ok());
    }
  }
  Finished tune(const std::string& text = job) {
    return run_kiln({"tune", folder.write("mine.toml", text), "--json", "--device", "opengl:0", "--cache-dir",
                     folder / "cache", "--budget", "300 s"});
  }
  std::vector<float> y() {
    const auto tensor = data::read_npy(folder / "y.npy");
    REQUIRE(tensor.has_value());
    const auto values = (*tensor)->as<float>();
    return {values.begin(), values.end()};
  }
};

}  // namespace

TEST_CASE("tune: a kernel's parameters are tried in a child, wrong ones rejected, and the winner serves") {
  Place place;
  const std::vector<float> before = place.y();
  const Finished tuned = place.tune();
  INFO(tuned.err << tuned.out);
  REQUIRE(tuned.status == 0);
  const auto result = tuned.json()["jobs"][0];
  CHECK(result["error"].is_null());
  CHECK(result["space"] == 8);
  CHECK(result["candidates"] == 8);
  CHECK(result["ms"] > 0);
  REQUIRE(result["rejected"].size() == 4);
  int wrong = 0, refused = 0;
  for (const auto& each : result["rejected"]) {
    const std::string text = each;
    wrong += text.find("MODE=2: corrupt: wrong") != std::string::npos;
    refused += text.find("MODE=3: invalid_argument") != std::string::npos;
  }
  CHECK(wrong == 2);
  CHECK(refused == 2);
  const std::string winner = result["variant"];
  CHECK((winner.ends_with("MODE=0") || winner.ends_with("MODE=1")));
  CHECK(place.y() == before);  // the job's own files are read only

  const Finished run = run_kiln(
      {"run", place.folder / "mine.toml", "--json", "--device", "opengl:0", "--cache-dir", place.folder / "cache"});
  INFO(run.err);
  REQUIRE(run.status == 0);
  CHECK(run.json()["jobs"][0]["variant"] == winner);
  CHECK(run.json()["cache"]["builds"] == 0);  // it was built before it was chosen
  const std::vector<float> after = place.y();
  bool right = true;
  for (std::size_t i = 0; i < after.size(); ++i) right = right && after[i] == 2.5f * (before[i] - 1) + before[i];
  CHECK(right);

  const Finished again = place.tune();
  REQUIRE(again.status == 0);
  CHECK(again.json()["jobs"][0]["candidates"] == 0);
  CHECK(again.json()["jobs"][0]["known"] == 8);

  std::string wider = job;
  wider.replace(wider.find("[16, 64]"), 8, "[16, 64, 8]");
  const Finished more = place.tune(wider);
  REQUIRE(more.status == 0);
  CHECK(more.json()["jobs"][0]["candidates"] == 4);  // the new value's own
  CHECK(more.json()["jobs"][0]["known"] == 8);

  const Finished audited = run_kiln({"tune", "audit", place.folder / "mine.toml", "--json", "--device", "opengl:0",
                                     "--cache-dir", place.folder / "cache"});
  INFO(audited.err << audited.out);
  CHECK(audited.json()["winners"] == 1);
  REQUIRE(audited.json()["audited"].size() == 1);
  CHECK(audited.json()["audited"][0]["variant"] == more.json()["jobs"][0]["variant"]);
  CHECK(audited.json()["audited"][0]["error"].is_null());
  CHECK(audited.json()["audited"][0]["wall_ms"] > 0);
}

TEST_CASE("tune: where the first variant fails nothing is chosen, and the reason is told") {
  Place place;
  std::string text = job;
  text.replace(text.find("[0, 1, 2, 3]"), 12, "[3, 0]");
  const Finished tuned = place.tune(text);
  INFO(tuned.err << tuned.out);
  CHECK(tuned.status == 1);
  CHECK_THAT(tuned.json()["jobs"][0]["error"].get<std::string>(), Contains("its first variant, user:TILE=16,MODE=3"));
}

TEST_CASE("tune: a kernel without parameters has nothing to choose from") {
  Place place;
  std::string text = job;
  text.replace(text.find("tune = { TILE = [16, 64], MODE = [0, 1, 2, 3] }"), 47, "");
  text.replace(text.find("N = 4000"), 8, "N = 4000, TILE = 64, MODE = 0");
  const Finished tuned = place.tune(text);
  INFO(tuned.err << tuned.out);
  CHECK(tuned.status == 0);
  CHECK_THAT(tuned.json()["jobs"][0]["error"].get<std::string>(), Contains("a kernel of your own that has `tune`"));
}
