// OpenCL C kernels of a user on the simulated card, through the command.
#include "host/resource_jobs.hpp"

#include <cstdlib>
#include <cstring>
#include <limits>

using namespace kiln::test;
using Catch::Matchers::Contains;
using kiln::DType;
using kiln::HostTensor;
using kiln::Shape;

TEST_CASE("kernel in OpenCL C: OpenCL C's own names of types, and vectors of three, are checked as what they are") {
  if (std::system("command -v clang-19 >/dev/null 2>&1") != 0) {
    WARN("skipped: no clang-19 on this machine");
    return;
  }
  const ResourceJobs jobs;
  jobs.folder.write("named.cl", R"(
// typedef double DATA_TYPE;
typedef float DATA_TYPE;
typedef DATA_TYPE real;
typedef unsigned int count_t;
kernel void scaled(global const real* x, global real* y, global const count_t* n) {
  const int i = get_global_id(0);
  if (i < n[0]) y[i] = x[i] * 2;
}
kernel void first(global const float3* x, global float* y) { y[get_global_id(0)] = x[get_global_id(0)].x; }
)");
  std::vector<float> twelve(12);
  for (std::size_t i = 0; i < twelve.size(); ++i) twelve[i] = static_cast<float>(i);
  jobs.write<float>("single.npy", DType::f32, {4}, {1, 2, 3, 4});
  jobs.write<double>("double.npy", DType::f64, {4}, {1, 2, 3, 4});
  jobs.write<float>("packed.npy", DType::f32, {4, 3}, twelve);
  const std::string n = "{ values = [4] }";
  const auto job = [&](const std::string& entry, const std::string& input, const std::string& more) {
    return "[[job]]\nname = \"" + input + "\"\nop = \"kernel\"\nsource = \"named.cl\"\nentry = \"" + entry +
           "\"\ndevice = \"amdgpu:0\"\nworkgroup = [4]\ngrid = [1]\nbindings = [ { input = \"" + input +
           "\" }, { output = \"" + input + ".out.npy\", shape = [4] }" + more + " ]\n";
  };
  const auto file =
      jobs.folder.write("jobs.toml", job("scaled", "single.npy", ", " + n) + job("scaled", "double.npy", ", " + n) +
                                         job("first", "packed.npy", ""));
  const Finished finished = run_kiln({"simulate", "--", std::string(KILN_BINARY_DIR) + "/bin/kiln", "run",
                                      file.string(), "--json", "--cache-dir", (jobs.folder / "cache").string()});
  INFO(finished.err << finished.out);
  CHECK(finished.status == 1);
  const auto json = finished.json();
  CHECK(json["jobs"][0]["error"].is_null());
  const auto y = jobs.tensor("single.npy.out.npy");
  CHECK(std::vector<float>(y->as<float>().begin(), y->as<float>().end()) == std::vector<float>{2, 4, 6, 8});
  CHECK_THAT(json["jobs"][1]["error"].get<std::string>(), Contains("float32") && Contains("float64"));
  CHECK_THAT(json["jobs"][2]["error"].get<std::string>(), Contains("lie 16 bytes apart and use 12"));
}

TEST_CASE("kernel in OpenCL C: asynchronous copies, sub-groups and values of every type in OpenCL C") {
  if (std::system("command -v clang-19 >/dev/null 2>&1") != 0) {
    WARN("skipped: no clang-19 on this machine");
    return;
  }
  const TemporaryFolder folder;
  // 80 work-items: two whole sub-groups of 32 and one of 16.
  folder.write("groups.cl", R"cl(
typedef struct { char tag; long big; float3 at; } Record;
__kernel void other(__global int* y) { y[0] = 1; }
__kernel void groups(__global const int* x, __global int* y, __local int* part, Record record, double half_of,
                     uchar small, float4 four) {
  const uint i = get_local_id(0);
  event_t e = async_work_group_copy(part, x, 80, 0);
  wait_group_events(1, &e);
  const int mine = part[79 - i];
  y[i] = sub_group_reduce_add(mine);
  y[80 + i] = sub_group_scan_exclusive_max(mine);
  y[160 + i] = sub_group_scan_inclusive_min(mine);
  y[240 + i] = (int)sub_group_broadcast((long)mine << 32, 5) + (int)(sub_group_broadcast((long)mine << 32, 5) >> 32);
  y[320 + i] = get_sub_group_size() * 100 + get_num_sub_groups() * 10 + get_sub_group_id();
  y[400 + i] = (int)(record.big + record.tag) + (int)(record.at.z + half_of) + small + (int)four.w +
               sub_group_any(mine == 3) * 1000;
  barrier(CLK_LOCAL_MEM_FENCE);
  part[i] = mine;
  barrier(CLK_LOCAL_MEM_FENCE);
  e = async_work_group_strided_copy(y + 480, part, 80, 2, 0);
  wait_group_events(1, &e);
}
)cl");
  auto x = HostTensor::create(DType::i32, {80}).value();
  std::vector<int> values(80);
  for (int i = 0; i < 80; ++i)
    values[static_cast<std::size_t>(i)] = x->as<int>()[static_cast<std::size_t>(i)] = i * 37 % 61 - 20;
  REQUIRE(kiln::data::write_npy(folder / "x.npy", *x).ok());
  std::string record(32, '\0');
  record[0] = 2;
  record[8] = 100;
  const float at[] = {1, 2, 8};
  std::memcpy(record.data() + 16, at, sizeof at);
  folder.write("record.bin", record);
  const auto job = folder.write("job.toml", R"([[job]]
name = "groups"
op = "kernel"
source = "groups.cl"
entry = "groups"
device = "amdgpu:0"
workgroup = [80]
grid = [1]
bindings = [ { input = "x.npy" }, { output = "y.npy", shape = [640], dtype = "int32" }, { local = 320 }, { input = "record.bin" },
             { float = 0.5, dtype = "float64" }, { int = 200, dtype = "uint8" }, { values = [1.0, 2.0, 3.0, 4.0] } ]
)");
  const Finished finished = run_kiln({"simulate", "--", std::string(KILN_BINARY_DIR) + "/bin/kiln", "run", job.string(),
                                      "--json", "--cache-dir", (folder / "cache").string()});
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  const auto y = kiln::data::read_npy(folder / "y.npy").value();
  const auto found = y->as<int>();
  for (std::size_t i = 0; i < 80; ++i) {
    INFO(i);
    const std::size_t first = i / 32 * 32, end = std::min<std::size_t>(first + 32, 80);
    const auto mine = [&](std::size_t lane) { return values[79 - lane]; };
    int sum = 0, most = std::numeric_limits<int>::min(), least = mine(first);
    bool any = false;
    for (std::size_t lane = first; lane < end; ++lane) {
      sum += mine(lane);
      if (lane < i) most = std::max(most, mine(lane));
      if (lane <= i) least = std::min(least, mine(lane));
      any = any || mine(lane) == 3;
    }
    CHECK(found[i] == sum);
    CHECK(found[80 + i] == most);
    CHECK(found[160 + i] == least);
    CHECK(found[240 + i] == mine(first + 5));
    CHECK(found[320 + i] == static_cast<int>((end - first) * 100 + 30 + first / 32));
    CHECK(found[400 + i] == 102 + 8 + 200 + 4 + (any ? 1000 : 0));
    CHECK(found[480 + 2 * i] == mine(i));
  }
}
