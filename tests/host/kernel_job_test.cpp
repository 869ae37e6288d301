#include "host/kiln_process.hpp"

#include "data/npy.hpp"

#include <catch2/catch.hpp>

using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

constexpr const char* saxpy = R"(#version 430
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer X { float x[]; };
layout(std430, binding = 1) buffer Y { float y[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < uint(COUNT)) y[i] = A * x[i] + y[i]; }
)";

constexpr const char* saxpy_job = R"(
[[job]]
name = "mine"
op = "kernel"
source = "saxpy.comp"
constants = { A = 2.5, COUNT = 1000 }
bindings = [ { input = "x.npy" }, { inout = "y.npy" } ]
grid = [16, 1, 1]
expect = "z.npy"
verify = true
)";

void write_ramp(const std::filesystem::path& path, float scale, float shift) {
  auto tensor = kiln::HostTensor::create(kiln::DType::f32, {1000}).value();
  float next = 0;
  for (float& value : tensor->as<float>()) value = scale * next++ + shift;
  REQUIRE(kiln::data::write_npy(path, *tensor).ok());
}

}  // namespace

TEST_CASE("a user's own kernel runs, is verified, written back, and built once") {
  const TemporaryFolder folder;
  folder.write("saxpy.comp", saxpy);
  const auto file = folder.write("job.toml", saxpy_job);
  for (int process = 0; process < 2; ++process) {
    write_ramp(folder / "x.npy", 1, 0);
    write_ramp(folder / "y.npy", 3, 1);
    write_ramp(folder / "z.npy", 5.5, 1);
    const Finished finished = run_kiln({"run", file, "--json", "--repeat", "3", "--cache-dir", folder / "cache"});
    INFO(finished.err << finished.out);
    REQUIRE(finished.status == 0);
    const auto json = finished.json();
    CHECK(json["jobs"][0]["verified"] == true);
    CHECK(json["jobs"][0]["device"]["id"] == "opengl:0");
    CHECK(json["cache"]["builds"] == (process == 0 ? 1 : 0));
    const auto written = kiln::data::read_npy(folder / "y.npy");
    REQUIRE(written);
    CHECK((*written)->as<float>()[999] == 5.5f * 999 + 1);
  }
  const auto stored = run_kiln({"cache", "list", "--json", "--cache-dir", folder / "cache"}).json()["programs"];
  REQUIRE(stored.size() == 1);
  CHECK(stored[0]["op"] == "kernel");
  CHECK(stored[0]["shape"] == "saxpy.comp grid 16x1x1");
}

TEST_CASE("a wrong expectation fails the job and leaves the file as it was") {
  const TemporaryFolder folder;
  folder.write("saxpy.comp", saxpy);
  write_ramp(folder / "x.npy", 1, 0);
  write_ramp(folder / "y.npy", 3, 1);
  write_ramp(folder / "z.npy", 5.5, 2);
  const Finished finished =
      run_kiln({"run", folder.write("job.toml", saxpy_job), "--json", "--cache-dir", folder / "cache"});
  CHECK(finished.status == 1);
  CHECK(finished.json()["jobs"][0]["verified"] == false);
  CHECK((*kiln::data::read_npy(folder / "y.npy"))->as<float>()[999] == 3.0f * 999 + 1);
}

TEST_CASE("one expectation for two results is refused before anything runs, and nothing is written") {
  const TemporaryFolder folder;
  folder.write("saxpy.comp", saxpy);
  for (const char* name : {"x.npy", "y.npy", "z.npy"}) write_ramp(folder / name, 1, 0);
  std::string two = saxpy_job;
  two.replace(two.find("{ input = \"x.npy\" }"), 19, "{ inout = \"x.npy\" }");
  const Finished finished = run_kiln({"run", folder.write("job.toml", two), "--json", "--cache-dir", folder / "cache"});
  CHECK(finished.status == 2);
  CHECK(finished.json()["jobs"].empty());
  CHECK_THAT(finished.err, Contains("\"mine\"") && Contains("expect: found 2 results") && Contains("job.toml:9:10"));
  CHECK((*kiln::data::read_npy(folder / "y.npy"))->as<float>()[999] == 999.0f);
}

TEST_CASE("a compile error is told whole, with the user's own line") {
  const TemporaryFolder folder;
  std::string broken = saxpy;
  broken.replace(broken.find("y[i] = A"), 8, "y[i] = B");
  folder.write("saxpy.comp", broken);
  write_ramp(folder / "x.npy", 1, 0);
  write_ramp(folder / "y.npy", 3, 1);
  write_ramp(folder / "z.npy", 5.5, 1);
  const Finished finished =
      run_kiln({"run", folder.write("job.toml", saxpy_job), "--json", "--cache-dir", folder / "cache"});
  CHECK(finished.status == 1);
  CHECK_THAT(finished.json()["jobs"][0]["error"].get<std::string>(), Contains("5") && Contains("B"));
}

TEST_CASE("OpenCL C has no device here: status 3, saying so") {
  const TemporaryFolder folder;
  folder.write("saxpy.cl", "kernel void main_() {}\n");
  write_ramp(folder / "x.npy", 1, 0);
  write_ramp(folder / "y.npy", 3, 1);
  write_ramp(folder / "z.npy", 5.5, 1);
  std::string cl = saxpy_job;
  cl.replace(cl.find("saxpy.comp"), 10, "saxpy.cl");
  const Finished finished = run_kiln({"run", folder.write("job.toml", cl), "--json", "--cache-dir", folder / "cache"});
  CHECK(finished.status == 3);
  CHECK_THAT(finished.json()["jobs"][0]["error"].get<std::string>(), Contains("opencl_c"));
}
