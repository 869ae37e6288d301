// `kiln simulate`: another program with the simulated AMD device present.
#include "host/kiln_process.hpp"

#include "data/npy.hpp"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <vector>

using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

Finished simulate(std::vector<std::string> words) {
  words.insert(words.begin(), "simulate");
  return run_kiln(words);
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

namespace {

// A job of one kernel on the simulated device; its inputs are x.npy (128 floats, 1 to 128) and y.npy (128 floats, 0).
Finished run_kernel(const TemporaryFolder& folder, const std::string& text, const std::string& keys) {
  folder.write("mine.cl", text);
  const auto job = folder.write("job.toml", "[[job]]\nname = \"k\"\nop = \"kernel\"\nsource = \"mine.cl\"\n" + keys +
                                                "\ngrid = [2]\ndevice = \"amdgpu:0\"\n");
  auto x = kiln::HostTensor::create(kiln::DType::f32, {128}).value();
  auto y = kiln::HostTensor::create(kiln::DType::f32, {128}).value();
  float next = 0;
  for (float& value : x->as<float>()) value = ++next;
  for (float& value : y->as<float>()) value = 0;
  REQUIRE(kiln::data::write_npy(folder / "x.npy", *x).ok());
  REQUIRE(kiln::data::write_npy(folder / "y.npy", *y).ok());
  return simulate({"--", std::string(KILN_BINARY_DIR) + "/bin/kiln", "run", job.string(), "--cache-dir",
                   (folder / "cache").string()});
}

std::vector<float> floats_in(const std::filesystem::path& file) {
  const auto read = kiln::data::read_npy(file);
  REQUIRE(read.has_value());
  const auto values = (*read)->as<float>();
  return {values.begin(), values.end()};
}

const std::string reverse_in_groups = R"(
__kernel void reverse(__global const float* x, __global float* y, __local float* part, const float scale, int shift) {
  size_t l = get_local_id(0), n = get_local_size(0);
  part[l] = x[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  y[get_global_id(0)] = part[n - 1 - l] * scale + shift;
}
)";
const std::string its_bindings = "{ input = \"x.npy\" }, { inout = \"y.npy\" }, ";

}  // namespace

TEST_CASE("simulate: a kernel takes its workgroup, local memory and numbers from the job") {
  if (std::system("command -v clang-19 >/dev/null 2>&1") != 0) {
    WARN("skipped: no clang-19 on this machine");
    return;
  }
  const TemporaryFolder folder;
  const Finished ran = run_kernel(
      folder, reverse_in_groups,
      "workgroup = [64, 1, 1]\nbindings = [ " + its_bindings + "{ local = 256 }, { float = 2.0 }, { int = 1 } ]");
  INFO(ran.err << ran.out);
  REQUIRE(ran.status == 0);
  const std::vector<float> y = floats_in(folder / "y.npy");
  for (std::size_t i = 0; i < 128; ++i) {
    const std::size_t from = i / 64 * 64 + 63 - i % 64;
    REQUIRE(y[i] == 2.0F * static_cast<float>(from + 1) + 1.0F);
  }
}

TEST_CASE("simulate: a kernel with a local pointer may read the size of its grid") {
  if (std::system("command -v clang-19 >/dev/null 2>&1") != 0) {
    WARN("skipped: no clang-19 on this machine");
    return;
  }
  const TemporaryFolder folder;
  const Finished ran = run_kernel(folder, R"(
__kernel void sums(__global const float* x, __global float* y, __local float* part) {
  size_t l = get_local_id(0);
  part[l] = x[get_global_id(0)];
  for (size_t step = get_local_size(0) / 2; step != 0; step /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < step) part[l] += part[l + step];
  }
  if (l == 0) y[get_group_id(0)] = part[0] + 1000000 * get_num_groups(0) + 100000 * get_global_size(0) / 128;
}
)",
                                  "workgroup = [64, 1, 1]\nbindings = [ " + its_bindings + "{ local = 256 } ]");
  INFO(ran.err << ran.out);
  REQUIRE(ran.status == 0);
  const std::vector<float> y = floats_in(folder / "y.npy");
  CHECK(y[0] == 2100000 + 64 * 65 / 2);
  CHECK(y[1] == 2100000 + 64 * 65 / 2 + 64 * 64);
}

TEST_CASE("simulate: arguments of another kind, type or number are refused by name, and no file is touched") {
  if (std::system("command -v clang-19 >/dev/null 2>&1") != 0) {
    WARN("skipped: no clang-19 on this machine");
    return;
  }
  struct Wrong {
    std::string keys;
    std::vector<std::string> words;
  };
  const std::string size = "workgroup = [64, 1, 1]\n";
  const Wrong all[] = {
      {"bindings = [ " + its_bindings + "{ local = 256 }, { float = 2.0 }, { int = 1 } ]", {"workgroup"}},
      {size + "bindings = [ " + its_bindings + "{ local = 256 }, { int = 2 }, { int = 1 } ]", {"scale", "float"}},
      {size + "bindings = [ " + its_bindings + "{ local = 256 }, { float = 2.0 }, { input = \"x.npy\" } ]", {"shift"}},
      {size + "bindings = [ { float = 1.0 }, { inout = \"y.npy\" }, { local = 256 }, { float = 2.0 }, { int = 1 } ]",
       {"x", "number"}},
      {size +
           "bindings = [ { inout = \"x.npy\" }, { inout = \"y.npy\" }, { local = 256 }, { float = 2.0 }, { int = 1 } ]",
       {"x", "read-only"}},
      {size + "bindings = [ " + its_bindings + "{ local = 256 }, { float = 2.0 } ]", {"reverse", "shift"}},
      {size + "bindings = [ " + its_bindings + "{ local = 256 }, { float = 2.0 }, { int = 1 }, { int = 1 } ]",
       {"reverse", "5"}},
      {size + "bindings = [ " + its_bindings + "{ local = 100000 }, { float = 2.0 }, { int = 1 } ]",
       {"local memory", "65536"}},
      {"workgroup = [2048, 1, 1]\nbindings = [ " + its_bindings + "{ local = 256 }, { float = 2.0 }, { int = 1 } ]",
       {"2048"}},
  };
  for (const Wrong& wrong : all) {
    const TemporaryFolder folder;
    const Finished refused = run_kernel(folder, reverse_in_groups, wrong.keys);
    INFO(wrong.keys << "\n" << refused.err << refused.out);
    CHECK(refused.status != 0);
    for (const std::string& word : wrong.words) CHECK_THAT(refused.err + refused.out, Contains(word));
    CHECK(floats_in(folder / "y.npy") == std::vector<float>(128, 0.0F));
  }
}

TEST_CASE("simulate: the compiler's errors name the user's file, and a workgroup declared twice both sides") {
  if (std::system("command -v clang-19 >/dev/null 2>&1") != 0) {
    WARN("skipped: no clang-19 on this machine");
    return;
  }
  const TemporaryFolder folder;
  const Finished wrong = run_kernel(folder, "\n__kernel void k(__global float* y) { y[0] = nothing; }\n",
                                    "workgroup = [64]\nconstants = { A = 1 }\nbindings = [ { inout = \"y.npy\" } ]");
  CHECK_THAT(wrong.err + wrong.out, Contains("mine.cl:2:45: error"));
  const Finished twice = run_kernel(
      folder, "__attribute__((reqd_work_group_size(64, 1, 1))) kernel void k(global float* y) { y[0] = 1; }\n",
      "workgroup = [32, 1, 1]\nbindings = [ { inout = \"y.npy\" } ]");
  CHECK(twice.status != 0);
  CHECK_THAT(twice.err + twice.out, Contains("64x1x1") && Contains("32x1x1"));
}
