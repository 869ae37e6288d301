// OpenCL C kernels of a user on the simulated card, through the command.
#include "host/resource_jobs.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>

using namespace kiln::test;
using Catch::Matchers::Contains;
using kiln::DType;
using kiln::HostTensor;
using kiln::Shape;

namespace {

bool lacks_clang() {
  if (std::system("command -v clang-19 >/dev/null 2>&1") == 0) return false;
  WARN("skipped: no clang-19 on this machine");
  return true;
}

Finished run_on_card(const ResourceJobs& jobs, const std::filesystem::path& file) {
  return run_kiln({"simulate", "--", std::string(KILN_BINARY_DIR) + "/bin/kiln", "run", file.string(), "--json",
                   "--cache-dir", (jobs.folder / "cache").string()});
}

// Runs NAME.cl of the folder on x.npy: `more` has its workgroup and its grid. Returns the `results` elements of y.npy.
std::vector<int> results_of(const ResourceJobs& jobs, const std::string& name, const std::string& more, int results) {
  const auto file =
      jobs.folder.write("job.toml", "[[job]]\nname = \"" + name + "\"\nop = \"kernel\"\nsource = \"" + name +
                                        ".cl\"\ndevice = \"amdgpu:0\"\n" + more +
                                        "\nbindings = [ { input = \"x.npy\" }, { output = \"y.npy\", shape = [" +
                                        std::to_string(results) + "], dtype = \"int32\" } ]\n");
  const Finished finished = run_on_card(jobs, file);
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  const auto y = jobs.tensor("y.npy");
  return {y->as<int>().begin(), y->as<int>().end()};
}

}  // namespace

TEST_CASE("kernel in OpenCL C: OpenCL C's own names of types, and vectors of three, are checked as what they are") {
  if (lacks_clang()) return;
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
  const Finished finished = run_on_card(jobs, file);
  INFO(finished.err << finished.out);
  CHECK(finished.status == 1);
  const auto json = finished.json();
  CHECK(json["jobs"][0]["error"].is_null());
  const auto y = jobs.tensor("single.npy.out.npy");
  CHECK(std::vector<float>(y->as<float>().begin(), y->as<float>().end()) == std::vector<float>{2, 4, 6, 8});
  CHECK_THAT(json["jobs"][1]["error"].get<std::string>(), Contains("float32") && Contains("float64"));
  CHECK_THAT(json["jobs"][2]["error"].get<std::string>(), Contains("elements of 12 bytes and a stride of 16 bytes"));
}

TEST_CASE("kernel in OpenCL C: asynchronous copies, sub-groups and values of every type in OpenCL C") {
  if (lacks_clang()) return;
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

TEST_CASE("kernel in OpenCL C: collectives of a workgroup, of every type") {
  if (lacks_clang()) return;
  const ResourceJobs jobs;
  // Two workgroups of 20 x 4: sub-groups of 32, 32 and 16.
  jobs.folder.write("whole.cl", R"cl(
kernel void whole(global const int* x, global int* y) {
  const uint at = get_group_id(0) * 80 + get_local_linear_id();
  const int mine = x[at];
  y[at] = work_group_reduce_add(mine);
  y[160 + at] = (int)(work_group_reduce_min((long)mine << 32) >> 32);
  y[320 + at] = work_group_scan_exclusive_add((uint)mine);
  y[480 + at] = (int)work_group_scan_inclusive_max((double)mine);
  const float least = work_group_scan_exclusive_min((float)mine);
  y[640 + at] = isinf(least) ? 1000 : (int)least;
  y[800 + at] = work_group_broadcast(mine, 7, 2) + 1000 * work_group_broadcast(get_local_id(0), 19, 3);
  y[960 + at] = work_group_all(mine > -21) + 2 * work_group_all(mine > 0) + 4 * work_group_any(mine == 40) +
                8 * work_group_any(mine == 41);
  int sum = 0;
  for (int n = 0; n < 3; ++n) sum = work_group_reduce_add(mine + n) - sum;
  y[1120 + at] = sum + (int)work_group_scan_inclusive_add((half)1);
  y[1280 + at] = (int)(work_group_reduce_max((ulong)(mine + 20) << 40) >> 40);
}
)cl");
  std::vector<int> x(160);
  for (int i = 0; i < 160; ++i) x[static_cast<std::size_t>(i)] = i * 37 % 61 - 20;
  jobs.write<int>("x.npy", DType::i32, {160}, x);
  const std::vector<int> found = results_of(jobs, "whole", "workgroup = [20, 4]\ngrid = [2]", 1440);
  for (std::size_t at = 0; at < 160; ++at) {
    INFO(at);
    const auto begin = x.begin() + static_cast<std::ptrdiff_t>(at / 80 * 80), end = begin + 80;
    const auto here = x.begin() + static_cast<std::ptrdiff_t>(at);
    const int sum = std::accumulate(begin, end, 0);
    CHECK(found[at] == sum);
    CHECK(found[160 + at] == *std::min_element(begin, end));
    CHECK(found[320 + at] == std::accumulate(begin, here, 0));
    CHECK(found[480 + at] == *std::max_element(begin, here + 1));
    CHECK(found[640 + at] == (here == begin ? 1000 : *std::min_element(begin, here)));
    CHECK(found[800 + at] == begin[47] + 19000);
    CHECK(found[960 + at] == 1 + (std::find(begin, end, 40) != end ? 4 : 0));
    CHECK(found[1120 + at] == sum + 2 * 80 - 80 + static_cast<int>(here - begin) + 1);
    CHECK(found[1280 + at] == *std::max_element(begin, end) + 20);
  }
}

TEST_CASE("kernel in OpenCL C: ballots, rotations and collectives of some work-items of a sub-group") {
  if (lacks_clang()) return;
  const ResourceJobs jobs;
  // Of 80 work-items, those with a third of the numbers take part: sub-groups of 32, 32 and 16.
  jobs.folder.write("some.cl", R"cl(
kernel void some(global const int* x, global int* y) {
  const uint i = get_local_id(0), lane = get_sub_group_local_id();
  const int mine = x[i];
  y[i] = sub_group_rotate(mine, 5) + 1000 * sub_group_clustered_rotate(mine, -1, 4);
  if (mine % 3 == 0) return;
  const uint4 odd = sub_group_ballot(mine % 2 != 0);
  y[80 + i] = (int)odd.x;
  y[160 + i] = sub_group_inverse_ballot(odd) + 2 * sub_group_ballot_bit_extract(odd, lane) +
               4 * (odd.y == 0 && odd.z == 0 && odd.w == 0);
  y[240 + i] = (int)(sub_group_ballot_bit_count(odd) + 100 * sub_group_ballot_inclusive_scan(odd) +
                     10000 * sub_group_ballot_exclusive_scan(odd));
  y[320 + i] = (int)(sub_group_ballot_find_lsb(odd) + 100 * sub_group_ballot_find_msb(odd)) + 10000 * sub_group_elect();
  y[400 + i] = sub_group_broadcast_first(mine);
  y[480 + i] = sub_group_non_uniform_reduce_add(mine) + 10000 * sub_group_non_uniform_any(mine == 40) +
               20000 * sub_group_non_uniform_all(mine % 3 != 0) + 40000 * sub_group_non_uniform_all(mine % 2 != 0) +
               80000 * sub_group_non_uniform_all_equal(mine) + 160000 * sub_group_non_uniform_all_equal(mine % 3 == 0);
  y[560 + i] = (int)sub_group_non_uniform_scan_inclusive_max((double)mine);
  y[640 + i] = sub_group_non_uniform_scan_exclusive_xor(mine);
  y[720 + i] = (int)(sub_group_clustered_reduce_min((long)mine << 33, 8) >> 33);
  y[800 + i] = sub_group_non_uniform_scan_inclusive_logical_and(mine) +
               2 * sub_group_non_uniform_reduce_logical_or(mine == 40) +
               4 * sub_group_non_uniform_reduce_logical_xor(mine % 2 != 0 ? 6 : 0);
  y[880 + i] = (int)(get_sub_group_eq_mask().x ^ get_sub_group_lt_mask().x ^ get_sub_group_le_mask().x ^
                     get_sub_group_gt_mask().x ^ get_sub_group_ge_mask().x);
  y[960 + i] = (int)(get_sub_group_lt_mask().x + get_sub_group_ge_mask().x);
}
)cl");
  std::vector<int> x(80);
  for (int i = 0; i < 80; ++i) x[static_cast<std::size_t>(i)] = i * 37 % 61 - 20;
  jobs.write<int>("x.npy", DType::i32, {80}, x);
  const std::vector<int> found = results_of(jobs, "some", "workgroup = [80]\ngrid = [1]", 1040);
  for (std::size_t i = 0; i < 80; ++i) {
    INFO(i);
    const int mine = x[i];
    const std::size_t first = i / 32 * 32, end = std::min<std::size_t>(first + 32, 80), rotated = first + (i + 5) % 32;
    if (rotated < end) CHECK(found[i] == x[rotated] + 1000 * x[i / 4 * 4 + (i + 3) % 4]);
    if (mine % 3 == 0) continue;
    std::uint32_t odd = 0, odd_until = 0;
    int sum = 0, most = -100, flipped = 0, least = 100;
    std::size_t elected = end;
    bool has_40 = false, all_odd = true, all_true = true;
    for (std::size_t other = first; other < end; ++other) {
      if (x[other] % 3 == 0) continue;
      elected = std::min(elected, other);
      if (x[other] % 2 != 0) odd |= 1u << (other - first);
      if (x[other] % 2 != 0 && other <= i) odd_until |= 1u << (other - first);
      sum += x[other];
      has_40 = has_40 || x[other] == 40;
      all_odd = all_odd && x[other] % 2 != 0;
      if (other <= i) most = std::max(most, x[other]), all_true = all_true && x[other] != 0;
      if (other < i) flipped ^= x[other];
      if (other / 8 == i / 8) least = std::min(least, x[other]);
    }
    const int own = mine % 2 != 0;
    CHECK(found[80 + i] == static_cast<int>(odd));
    CHECK(found[160 + i] == own * 3 + 4);
    CHECK(found[240 + i] ==
          std::popcount(odd) + 100 * std::popcount(odd_until) + 10000 * (std::popcount(odd_until) - own));
    CHECK(found[320 + i] == std::countr_zero(odd) + 100 * (31 - std::countl_zero(odd)) + 10000 * (elected == i));
    CHECK(found[400 + i] == x[elected]);
    CHECK(found[480 + i] == sum + 10000 * has_40 + 20000 + 40000 * all_odd + 160000);
    CHECK(found[560 + i] == most);
    CHECK(found[640 + i] == flipped);
    CHECK(found[720 + i] == least);
    CHECK(found[800 + i] == all_true + 2 * has_40 + 4 * (std::popcount(odd) % 2));
    const std::uint32_t bit = 1u << (i - first), below = bit - 1, upto = bit | below;
    CHECK(found[880 + i] == static_cast<int>(bit ^ below ^ upto ^ ~upto ^ ~below));
    CHECK(found[960 + i] == -1);
  }
}

TEST_CASE("kernel in OpenCL C: atomics of OpenCL 2.0, of every type, order and scope") {
  if (lacks_clang()) return;
  const ResourceJobs jobs;
  jobs.folder.write("atomics.cl", R"cl(
kernel void atomics(volatile global atomic_int* n, global atomic_ulong* big, global float* f, global double* d,
                    global int* y) {
  local atomic_uint count;
  local atomic_flag taken;
  local int behind_lock;
  const int i = get_local_id(0);
  if (i == 0) {
    atomic_init(&count, 7);
    atomic_flag_clear(&taken);
    behind_lock = 0;
  }
  work_group_barrier(CLK_LOCAL_MEM_FENCE, memory_scope_work_group);
  y[i] = (int)atomic_fetch_add_explicit(&count, 1, memory_order_relaxed, memory_scope_work_group);
  atomic_fetch_add(n, i);
  atomic_fetch_sub_explicit(n + 1, i, memory_order_acq_rel);
  atomic_fetch_or_explicit(n + 2, 1 << i % 31, memory_order_release, memory_scope_device);
  atomic_fetch_xor_explicit(n + 3, 1 << i % 31, memory_order_acquire, memory_scope_all_svm_devices);
  atomic_fetch_and(n + 4, ~(1 << i % 20));
  atomic_fetch_min(n + 5, -i);
  atomic_fetch_max(n + 6, i);
  if (i == 5) y[128] = atomic_exchange(n + 7, 9);
  int old = atomic_load_explicit(n + 8, memory_order_relaxed);
  while (!atomic_compare_exchange_weak(n + 8, &old, old + 2)) continue;
  int not_there = -1;
  if (i == 6) y[129] = atomic_compare_exchange_strong_explicit(n + 9, &not_there, 3, memory_order_seq_cst,
                                                              memory_order_relaxed, memory_scope_sub_group);
  if (i == 6) y[130] = not_there;
  atomic_fetch_max(big, (ulong)i << 40);
  atomic_fetch_add_explicit(big + 1, 1UL << 33, memory_order_seq_cst, memory_scope_device);
  atomic_fetch_add((volatile global atomic_float*)f, 0.5f);
  atomic_fetch_min((volatile global atomic_float*)f + 1, -(float)i);
  atomic_fetch_max((volatile global atomic_double*)d, i + 0.25);
  atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_seq_cst, memory_scope_device);
  if (get_sub_group_local_id() == 0) {  // work-items of one sub-group do not wait for one another
    while (atomic_flag_test_and_set_explicit(&taken, memory_order_acquire, memory_scope_work_group)) continue;
    behind_lock += i;
    atomic_flag_clear_explicit(&taken, memory_order_release, memory_scope_work_group);
  }
  work_group_barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  if (i == 0) y[131] = behind_lock;
  if (i == 0) atomic_store_explicit(n + 10, (int)atomic_load(&count), memory_order_release);
}
)cl");
  jobs.write<int>("n.npy", DType::i32, {11}, {0, 0, 0, 0, -1, 4, 4, 4, 4, 4, 4});
  jobs.write<std::uint64_t>("big.npy", DType::u64, {2}, {5, 5});
  jobs.write<float>("f.npy", DType::f32, {2}, {1, 1});
  jobs.write<double>("d.npy", DType::f64, {1}, {1});
  const auto file = jobs.folder.write("job.toml", R"([[job]]
name = "atomics"
op = "kernel"
source = "atomics.cl"
device = "amdgpu:0"
workgroup = [128]
grid = [1]
bindings = [ { inout = "n.npy" }, { inout = "big.npy" }, { inout = "f.npy" }, { inout = "d.npy" },
             { output = "y.npy", shape = [132], dtype = "int32" } ]
)");
  const Finished finished = run_on_card(jobs, file);
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  const auto n = jobs.tensor("n.npy"), big = jobs.tensor("big.npy"), f = jobs.tensor("f.npy"), d = jobs.tensor("d.npy"),
             y = jobs.tensor("y.npy");
  constexpr int sum = 127 * 128 / 2, all_bits = std::numeric_limits<int>::max();
  int flipped = 0;
  for (int i = 0; i < 128; ++i) flipped ^= 1 << i % 31;
  CHECK(std::vector<int>(n->as<int>().begin(), n->as<int>().end()) ==
        std::vector<int>{sum, -sum, all_bits, flipped, ~0xfffff, -127, 127, 9, 4 + 2 * 128, 4, 7 + 128});
  CHECK(big->as<std::uint64_t>()[0] == std::uint64_t{127} << 40);
  CHECK(big->as<std::uint64_t>()[1] == 5 + (std::uint64_t{128} << 33));
  CHECK(f->as<float>()[0] == 65);
  CHECK(f->as<float>()[1] == -127);
  CHECK(d->as<double>()[0] == 127.25);
  std::vector<int> counted(y->as<int>().begin(), y->as<int>().begin() + 128);
  std::ranges::sort(counted);
  for (int i = 0; i < 128; ++i) CHECK(counted[static_cast<std::size_t>(i)] == 7 + i);
  CHECK(y->as<int>()[128] == 4);
  CHECK(y->as<int>()[129] == 0);
  CHECK(y->as<int>()[130] == 4);
  CHECK(y->as<int>()[131] == 32 + 64 + 96);
}

TEST_CASE("kernel in OpenCL C: a saturated conversion makes NaN 0, of every type and mode") {
  if (lacks_clang()) return;
  const ResourceJobs jobs;
  // With "##" in the text every conversion is replaced, without it those that the text names.
  const std::string named = R"(
kernel void saturate(global const float* x, global long* y) {
  const uint i = get_global_id(0);
  const float4 v = (float4)(x[i], 1.5f, x[i], -1.0f);
  uint evaluated = 0;
  y[i * 8] = convert_char_sat(x[i + 0 * evaluated++]);
  y[i * 8 + 1] = convert_short4_sat_rte(v).z;
  y[i * 8 + 2] = convert_int_sat_rtn((double)x[i]);
  y[i * 8 + 3] = convert_long_sat_rtz((half)x[i]);
  y[i * 8 + 4] = convert_uint_sat_rtp(x[i]);
  y[i * 8 + 5] = convert_short_sat(100000);
  y[i * 8 + 6] = convert_int_sat(1.0e300);
  y[i * 8 + 7] = convert_char4_sat(v).y * evaluated;
}
)";
  jobs.folder.write("named.cl", named);
  std::string pasted = "#define CONVERT(TO, x) convert_##TO##_sat(x)\n" + named;
  pasted.replace(pasted.find("convert_char_sat("), std::string("convert_char_sat(").size(), "CONVERT(char, ");
  jobs.folder.write("pasted.cl", pasted);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  jobs.write<float>("x.npy", DType::f32, {4}, {nan, -nan, -1e30F, 12.7F});
  for (const std::string source : {"named", "pasted"}) {
    const auto file = jobs.folder.write(
        "jobs.toml",
        "[[job]]\nname = \"saturate\"\nop = \"kernel\"\nsource = \"" + source +
            ".cl\"\ndevice = \"amdgpu:0\"\nworkgroup = [4]\ngrid = [1]\nbindings = [ { input = \"x.npy\" }, "
            "{ output = \"y.npy\", shape = [32], dtype = \"int64\" } ]\n");
    const Finished finished = run_on_card(jobs, file);
    INFO(source << ": " << finished.err << finished.out);
    REQUIRE(finished.status == 0);
    const auto y = jobs.tensor("y.npy");
    const std::int64_t least = std::numeric_limits<std::int64_t>::min();
    const std::vector<std::int64_t> expected = {0,    0,      0,           0,     0,  32767, 2147483647, 1,  //
                                                0,    0,      0,           0,     0,  32767, 2147483647, 1,  //
                                                -128, -32768, -2147483648, least, 0,  32767, 2147483647, 1,  //
                                                12,   13,     12,          12,    13, 32767, 2147483647, 1};
    CHECK(std::vector<std::int64_t>(y->as<std::int64_t>().begin(), y->as<std::int64_t>().end()) == expected);
  }
}

TEST_CASE("kernel in OpenCL C: abs_diff is right where the difference of signed integers overflows") {
  if (lacks_clang()) return;
  const ResourceJobs jobs;
  jobs.folder.write("differ.cl", R"(
kernel void differ(global const long* x, global ulong* y) {
  const long a = x[0], b = x[1];
  y[0] = abs_diff(a, b);
  y[1] = abs_diff(b, a);
  y[2] = abs_diff((int)(a >> 32), (int)(b >> 32));
  y[3] = abs_diff((short)(a >> 48), (short)(b >> 48));
  y[4] = abs_diff((char)(a >> 56), (char)(b >> 56));
  y[5] = abs_diff((ulong)a, (ulong)b);
  y[6] = abs_diff((long3)(a, b, 1), (long3)(b, a, -1)).y;
  y[7] = abs_diff((int16)(a >> 32), (int16)(b >> 32)).sf;
}
)");
  const std::int64_t least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
  jobs.write<std::int64_t>("x.npy", DType::i64, {2}, {least, most});
  const auto file = jobs.folder.write(
      "jobs.toml",
      "[[job]]\nname = \"differ\"\nop = \"kernel\"\nsource = \"differ.cl\"\ndevice = \"amdgpu:0\"\nworkgroup = [1]\n"
      "grid = [1]\nbindings = [ { input = \"x.npy\" }, { output = \"y.npy\", shape = [8], dtype = \"uint64\" } ]\n");
  const Finished finished = run_on_card(jobs, file);
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  const auto y = jobs.tensor("y.npy");
  const std::uint64_t all = std::numeric_limits<std::uint64_t>::max();
  CHECK(std::vector<std::uint64_t>(y->as<std::uint64_t>().begin(), y->as<std::uint64_t>().end()) ==
        std::vector<std::uint64_t>{all, all, 0xffffffff, 0xffff, 0xff, 1, all, 0xffffffff});
}

TEST_CASE("kernel in OpenCL C: signed integers become half in every rounding mode") {
  if (lacks_clang()) return;
  const ResourceJobs jobs;
  jobs.folder.write("round.cl", R"(
kernel void round_to_half(global const int* x, global float* y) {
  const uint i = get_global_id(0);
  const int3 v = (int3)(x[i]);
  y[i * 6] = convert_half_rtz(x[i]);
  y[i * 6 + 1] = convert_half3_rtp(v).z;
  y[i * 6 + 2] = convert_half_rtn((long)x[i]);
  y[i * 6 + 3] = convert_half(x[i]);
  y[i * 6 + 4] = convert_half_rtn((short)x[i]);
  y[i * 6 + 5] = convert_half_rtz(x[i] + 0.5f);
}
)");
  jobs.write<int>("x.npy", DType::i32, {4}, {-28443, 40000, -70000, 2047});
  const auto file = jobs.folder.write(
      "jobs.toml",
      "[[job]]\nname = \"round\"\nop = \"kernel\"\nsource = \"round.cl\"\ndevice = \"amdgpu:0\"\nworkgroup = [4]\n"
      "grid = [1]\nbindings = [ { input = \"x.npy\" }, { output = \"y.npy\", shape = [24] } ]\n");
  const Finished finished = run_on_card(jobs, file);
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  const auto y = jobs.tensor("y.npy");
  const float infinity = std::numeric_limits<float>::infinity();
  // As a short, 40000 is -25536 and -70000 is -4464.
  CHECK(std::vector<float>(y->as<float>().begin(), y->as<float>().end()) ==
        std::vector<float>{-28432, -28432, -28448,    -28448,    -28448, -28432,  //
                           40000,  40000,  40000,     40000,     -25536, 40000,   //
                           -65504, -65504, -infinity, -infinity, -4464,  -65504,  //
                           2047,   2047,   2047,      2047,      2047,   2047});
}
