// `kiln simulate`: another program with the simulated AMD device present.
#include "host/kiln_process.hpp"

#include "data/npy.hpp"

#include <catch2/catch.hpp>

#include <cstdlib>

using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

// A sanitizer wants to be loaded before what is preloaded, and says so; the simulator is never built with one.
const std::map<std::string, std::string> sanitizer_may_come_second{{"ASAN_OPTIONS", "verify_asan_link_order=0"}};

Finished simulate(std::vector<std::string> words) {
  words.insert(words.begin(), "simulate");
  return run_kiln(words, {.environment = sanitizer_may_come_second});
}

}  // namespace

TEST_CASE("simulate: the command's exit status is the verb's, and its words stay whole") {
  CHECK(simulate({"--", "true"}).status == 0);
  CHECK(simulate({"--", "sh", "-c", "exit 7"}).status == 7);
  const Finished echoed =
      simulate({"--target", "gfx1030", "--", "sh", "-c", "echo \"$KILN_SIM_TARGET:$1\"", "sh", "a  b"});
  CHECK(echoed.out == "gfx1030:a  b\n");
}

TEST_CASE("simulate: what cannot be started or simulated is a usage error") {
  const Finished target = simulate({"--target", "gfx803", "--", "true"});
  CHECK(target.status == 2);
  CHECK_THAT(target.err, Contains("gfx803") && Contains("gfx1100 or gfx1030"));
  const Finished command = simulate({"--", "no-such-command-anywhere"});
  CHECK(command.status == 2);
  CHECK_THAT(command.err, Contains("no-such-command-anywhere"));
  const Finished nothing = run_kiln({"simulate"});
  CHECK(nothing.status == 2);
  CHECK_THAT(nothing.err, Contains("no command given"));
}

TEST_CASE("simulate: the device is listed as simulated, and computes what the reference says") {
  const TemporaryFolder folder("with a space");
  const std::string kiln = std::string(KILN_BINARY_DIR) + "/bin/kiln";
  const auto job = folder.write("job.toml", R"([[job]]
name = "small"
op = "conv2d"
c = 4
h = 9
w = 7
k = 5
r = 3
s = 3
pad = 1
input = "random:1"
weights = "random:2"
verify = true
device = "amdgpu:0"
)");
  if (std::system("command -v clang-19 >/dev/null 2>&1") != 0) {
    WARN("skipped: no clang-19 on this machine");
    return;
  }
  for (const std::string target : {"gfx1100", "gfx1030"}) {
    const auto run = [&] {
      return simulate(
          {"--target", target, "--", kiln, "run", job.string(), "--json", "--cache-dir", (folder / target).string()});
    };
    const Finished first = run();
    INFO(first.err << first.out);
    REQUIRE(first.status == 0);
    const auto ran = first.json()["jobs"][0];
    CHECK(ran["verified"] == true);
    CHECK(ran["device"]["kind"] == "simulated");
    CHECK(first.json()["cache"]["builds"].get<int>() > 0);
    const Finished second = run();
    REQUIRE(second.status == 0);
    CHECK(second.json()["cache"]["builds"] == 0);
  }
}

TEST_CASE("simulate: a kernel of the user's gets its number by value") {
  if (std::system("command -v clang-19 >/dev/null 2>&1") != 0) {
    WARN("skipped: no clang-19 on this machine");
    return;
  }
  const TemporaryFolder folder;
  folder.write("scale.cl", R"(__attribute__((reqd_work_group_size(64, 1, 1)))
kernel void scale(global float* values, float by) { values[get_global_id(0)] *= by; }
)");
  const auto job = folder.write("job.toml", R"([[job]]
name = "scale"
op = "kernel"
source = "scale.cl"
bindings = [ { inout = "values.npy" }, { input = "by.npy" } ]
grid = [2, 1, 1]
expect = "expected.npy"
verify = true
device = "amdgpu:0"
)");
  const auto store = [&](const char* file, std::size_t count, float factor, float shift) {
    auto tensor = kiln::HostTensor::create(kiln::DType::f32, {static_cast<std::int64_t>(count)}).value();
    float next = 0;
    for (float& value : tensor->as<float>()) value = factor * next++ + shift;
    REQUIRE(kiln::data::write_npy(folder / file, *tensor).ok());
  };
  // Another value is no other program: the second process builds nothing.
  for (const float by : {2.5F, -3.0F}) {
    store("values.npy", 128, 1, 1);
    store("expected.npy", 128, by, by);
    store("by.npy", 1, 0, by);
    const Finished finished = simulate({"--", std::string(KILN_BINARY_DIR) + "/bin/kiln", "run", job.string(), "--json",
                                        "--repeat", "1", "--cache-dir", (folder / "cache").string()});
    INFO(finished.err << finished.out);
    REQUIRE(finished.status == 0);
    CHECK(finished.json()["jobs"][0]["verified"] == true);
    CHECK(finished.json()["cache"]["builds"] == (by > 0 ? 1 : 0));
  }
}
