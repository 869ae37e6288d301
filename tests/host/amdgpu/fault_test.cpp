// What goes wrong on the simulated AMD device, through the whole command: each fault is planted in the second of three
// jobs. The report says by type what it was and where, the other jobs have their results, and the next run, with the
// same cache folder, is served.
#include "host/kiln_process.hpp"

#include "data/npy.hpp"

#include <catch2/catch.hpp>

#include <cstdlib>

using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

std::string gemm(const std::string& name, int columns) {
  return "\n[[job]]\nname = \"" + name + "\"\nop = \"gemm\"\nm = 16\nn = " + std::to_string(columns) +
         "\nk = 8\ninput = \"random:3\"\nweights = \"random:4\"\nverify = true\n";
}

// OpenGL's submissions would be counted too. Small products take one each, by
// programs of their own.
const std::string jobs = "[plugins]\nload = [\"cpu\", \"amdgpu_pm4\", \"dynamic_shaders\"]\n" + gemm("before", 8) +
                         gemm("meets", 12) + gemm("after", 20);

// Three jobs, one submission each, on a cache folder in which their programs lie: each fault has a copy of it.
class FaultyRuns {
 public:
  FaultyRuns() {
    const Finished warm = run("warm", "", {});
    INFO(warm.err << warm.out);
    REQUIRE(warm.status == 0);
    REQUIRE(warm.json()["jobs"][2]["device"]["id"] == "amdgpu:0");
  }

  // With the folder of that name, made from the warm one where it is new.
  Finished run(const std::string& cache, const std::string& fault, const std::vector<std::string>& more) const {
    if (cache != "warm" && !std::filesystem::exists(folder_ / cache)) {
      std::filesystem::copy(folder_ / "warm", folder_ / cache, std::filesystem::copy_options::recursive);
    }
    std::vector<std::string> words = {"simulate",     "--",       std::string(KILN_BINARY_DIR) + "/bin/kiln",
                                      "run",          file_,      "--json",
                                      "--device",     "amdgpu:0", "--cache-dir",
                                      folder_ / cache};
    words.insert(words.end(), more.begin(), more.end());
    // Hangs are given up soon.
    return run_kiln(words, {.environment = {{"KILN_SIM_LOCKUP_MS", "20"}, {"KILN_SIM_FAULT", fault}}});
  }

 private:
  TemporaryFolder folder_;
  std::string file_ = folder_.write("jobs.toml", jobs);
};

const FaultyRuns& faulty_runs() {
  static const FaultyRuns runs;
  return runs;
}

bool there_is_a_compiler() {
  if (std::system("command -v clang-19 >/dev/null 2>&1") == 0) return true;
  WARN("skipped: no clang-19 on this machine");
  return false;
}

void check_served(const nlohmann::json& job) {
  INFO(job.dump());
  CHECK(job["status"] == "ok");
  CHECK(job["verified"] == true);
}

const std::vector<std::string> only_there = {"--set", "device.fallback=never"};

struct Case {
  const char* fault;
  const char* status;  // the job's that meets it, where no other device may take it
  const char* where;   // what the message names: the kernel and its program, or the node
  const char* why;
  bool quarantined;  // the program is refused from then on
};

// The devices' own words: how the kernel's error is called by errno.
constexpr Case cases[] = {
    {"hang@2", "unavailable", "submission 2: pass 0: kernel 'kiln_kernel' (program ", "hung the device", true},
    {"page_fault@2", "unavailable", "submission 2: pass 0: kernel 'kiln_kernel' (program ", "hung the device", true},
    {"vram_lost@2", "device_lost", "pass 0: kernel 'kiln_kernel' (program ", "device memory was lost in a reset", true},
    {"enomem@2", "unavailable", "/dev/dri/renderD", "Cannot allocate memory", false},
    {"unplugged@2", "device_lost", "/dev/dri/renderD", "the device was removed", false},
};

}  // namespace

TEST_CASE("simulated fault: the job is served by the CPU, the report says why, the others have their results") {
  if (!there_is_a_compiler()) return;
  const FaultyRuns& runs = faulty_runs();
  for (const Case& one : cases) {
    const Finished met = runs.run(one.fault, one.fault, {});
    INFO(one.fault << met.err << met.out);
    REQUIRE(met.status == 0);
    const auto report = met.json()["jobs"];
    REQUIRE(report.size() == 3);
    for (const auto& job : report) check_served(job);
    CHECK(report[0]["device"]["id"] == "amdgpu:0");
    CHECK(report[0]["notes"].empty());
    CHECK(report[1]["device"]["id"] == "cpu");
    CHECK_THAT(report[1]["notes"].dump(),
               Contains("amdgpu:0 cannot serve") && Contains(one.where) && Contains(one.why));

    const Finished next = runs.run(one.fault, "", {});
    INFO("the next run: " << next.err << next.out);
    REQUIRE(next.status == 0);
    const auto later = next.json()["jobs"];
    for (const auto& job : later) check_served(job);
    CHECK(later[0]["device"]["id"] == "amdgpu:0");
    CHECK(later[1]["device"]["id"] == (one.quarantined ? "cpu" : "amdgpu:0"));
    CHECK(later[2]["device"]["id"] == "amdgpu:0");
    if (one.quarantined) CHECK_THAT(later[1]["notes"].dump(), Contains("quarantined until"));
    CHECK(next.json()["cache"]["builds"] == 0);  // one in quarantine is refused where it would run, not compiled again
  }
}

TEST_CASE("simulated fault: where no other device may take the job its error is typed and names where it was") {
  if (!there_is_a_compiler()) return;
  const FaultyRuns& runs = faulty_runs();
  for (const Case& one : cases) {
    const Finished met = runs.run(std::string(one.fault) + " alone", one.fault, only_there);
    INFO(one.fault << met.err << met.out);
    const auto report = met.json()["jobs"];
    REQUIRE(report.size() == 3);
    check_served(report[0]);
    if (std::string_view(one.fault) == "enomem@2") {  // the second attempt finds memory
      check_served(report[1]);
      CHECK_THAT(report[1]["notes"].dump(), Contains(one.why) && Contains("run again"));
    } else {
      CHECK(report[1]["status"] == one.status);
      CHECK(report[1]["verified"].is_null());
      CHECK_THAT(report[1]["error"].get<std::string>(),
                 Contains("amdgpu:0") && Contains(one.where) && Contains(one.why));
      CHECK(met.status == 3);
    }
    // There is no other device to choose: the third does not wait until the pause of this one is over.
    if (std::string_view(one.fault) != "unplugged@2") check_served(report[2]);
  }
}

TEST_CASE("simulated fault: a device lost under the last job, and no other allowed: status 3, as where none is left") {
  if (!there_is_a_compiler()) return;
  const Finished met = faulty_runs().run("last", "vram_lost@3", only_there);
  INFO(met.err << met.out);
  CHECK(met.status == 3);
  const auto report = met.json()["jobs"];
  REQUIRE(report.size() == 3);
  check_served(report[0]);
  check_served(report[1]);
  CHECK(report[2]["status"] == "device_lost");
}

TEST_CASE("simulated fault: a context lost to another's reset costs nothing but a line in the log") {
  if (!there_is_a_compiler()) return;
  const FaultyRuns& runs = faulty_runs();
  const Finished met = runs.run("cancelled", "cancelled@2", {});
  INFO(met.err << met.out);
  REQUIRE(met.status == 0);
  const auto report = met.json()["jobs"];
  REQUIRE(report.size() == 3);
  for (const auto& job : report) {
    check_served(job);
    CHECK(job["device"]["id"] == "amdgpu:0");
  }
  CHECK_THAT(met.err, Contains("amdgpu:0: the device was reset between submissions"));
  const Finished next = runs.run("cancelled", "", {});
  REQUIRE(next.status == 0);
  CHECK(next.json()["cache"]["builds"] == 0);  // nothing was put into quarantine
}

TEST_CASE("simulated fault: what the kernel refuses as wrong is that job's failure, told as an internal error") {
  if (!there_is_a_compiler()) return;
  const FaultyRuns& runs = faulty_runs();
  const Finished met = runs.run("einval", "einval@2", {});
  INFO(met.err << met.out);
  CHECK(met.status == 1);
  const auto report = met.json()["jobs"];
  REQUIRE(report.size() == 3);
  check_served(report[0]);
  CHECK(report[1]["status"] == "internal");
  CHECK_THAT(report[1]["error"].get<std::string>(),
             Contains("amdgpu:0") && Contains("/dev/dri/renderD") && Contains("Invalid argument"));
  check_served(report[2]);
  const Finished next = runs.run("einval", "", {});
  REQUIRE(next.status == 0);
  const auto next_report = next.json();
  for (const auto& job : next_report["jobs"]) CHECK(job["device"]["id"] == "amdgpu:0");
}

TEST_CASE("simulated fault: a device without memory for a buffer is named with its node, and the CPU serves") {
  if (!there_is_a_compiler()) return;
  const FaultyRuns& runs = faulty_runs();
  const Finished met = runs.run("buffers", "enomem_buffer@1+", {});
  INFO(met.err << met.out);
  REQUIRE(met.status == 0);
  const auto met_report = met.json();
  for (const auto& job : met_report["jobs"]) {
    check_served(job);
    CHECK(job["device"]["id"] == "cpu");
    CHECK_THAT(job["notes"].dump(), Contains("/dev/dri/renderD") && Contains("Cannot allocate memory"));
  }
  const Finished next = runs.run("buffers", "", {});
  REQUIRE(next.status == 0);
  const auto next_report = next.json();
  for (const auto& job : next_report["jobs"]) CHECK(job["device"]["id"] == "amdgpu:0");
}

TEST_CASE("simulated fault: a device that fails at everything leaves its jobs to the CPU, one after the other") {
  if (!there_is_a_compiler()) return;
  const FaultyRuns& runs = faulty_runs();
  for (const char* fault : {"hang@1+", "vram_lost@1+", "cancelled@1+"}) {
    const Finished met = runs.run(fault, fault, {"--repeat", "3"});
    INFO(fault << met.err << met.out);
    REQUIRE(met.status == 0);
    const auto met_report = met.json();
    for (const auto& job : met_report["jobs"]) {
      check_served(job);
      CHECK(job["device"]["id"] == "cpu");
      CHECK_FALSE(job["notes"].empty());
    }
  }
}

TEST_CASE("simulated fault: a kernel's error says what stopped it, and the watchdog's time is a setting") {
  if (!there_is_a_compiler()) return;
  const TemporaryFolder folder;
  folder.write("bad.cl", R"(
__attribute__((reqd_work_group_size(32, 1, 1))) kernel void stray(global uint* d) {
  *(global uint*)0x123400000ul = d[0];
}
__attribute__((reqd_work_group_size(32, 1, 1))) kernel void trap(global uint* d) {
  if (d[0] == 0) __builtin_trap();
}
__attribute__((reqd_work_group_size(32, 1, 1))) kernel void endless(global volatile uint* d) {
  while (d[0] == 0) {}
}
)");
  const std::pair<const char*, std::vector<std::string>> expected[] = {
      {"stray", {"kernel 'stray'", "was stopped by a fault and is in quarantine (unmapped at 0x123400000 "}},
      {"trap", {"kernel 'trap'", "was stopped by a fault and is in quarantine (unknown opcode at 0x", "s_trap"}},
      {"endless", {"kernel 'endless'", "hung the device and is in quarantine (watchdog at 0x", "250 ms"}}};
  const auto zeros = kiln::HostTensor::create(kiln::DType::u32, {32});
  REQUIRE(zeros.has_value());
  for (const auto& [name, words] : expected) {  // a device that faulted is set aside: each in a process of its own
    const std::string entry = name;
    REQUIRE(kiln::data::write_npy(folder / (entry + ".npy"), **zeros).ok());
    const std::string file =
        "[plugins]\nload = [\"cpu\", \"amdgpu_pm4\", \"dynamic_shaders\"]\n[device]\n"
        "prefer = \"amdgpu:0\"\nfallback = \"never\"\n[[job]]\nname = \"" +
        entry + "\"\nop = \"kernel\"\nsource = \"bad.cl\"\nentry = \"" + entry + "\"\nbindings = [{ inout = \"" +
        entry + ".npy\" }]\ngrid = [1, 1, 1]\n";
    const Finished finished =
        run_kiln({"simulate", "--", std::string(KILN_BINARY_DIR) + "/bin/kiln", "run",
                  folder.write(entry + ".toml", file), "--json", "--cache-dir", folder / entry},
                 {.environment = {{"KILN_SIM_LOCKUP_MS", "20"}, {"KILN_SIM_WATCHDOG_MS", "250"}}});
    INFO(finished.err << finished.out);
    const auto error = finished.json()["jobs"][0]["error"].get<std::string>();
    for (const std::string& word : words) CHECK_THAT(error, Contains(word));
  }
}

namespace {

// Jobs in OpenCL C, for the only device that reads it; "bad.cl" stores outside of its buffer.
class KernelJobs {
 public:
  KernelJobs() {
    const std::string head =
        "__attribute__((reqd_work_group_size(64,1,1))) kernel void f(global float* y) { uint i = get_global_id(0); ";
    folder_.write("bad.cl", head + "y[(size_t)i * 100000000u + (1ul << 40)] = 1; }\n");
    for (int k = 0; k < most; ++k) {
      folder_.write("good" + std::to_string(k) + ".cl", head + "y[i] = " + std::to_string(k + 2) + ".0f; }\n");
    }
  }

  // 'b': the bad kernel, anything else a good one of its own. Each good job has its output in full.
  void check(const std::string& order, const std::vector<std::string>& more, const std::string& fault = {},
             long fail = -1) const {
    std::string text = "[plugins]\nload = [\"cpu\", \"amdgpu_pm4\", \"dynamic_shaders\"]\n";
    for (std::size_t k = 0; k < order.size(); ++k) {
      const std::string number = std::to_string(k);
      text += "\n[[job]]\nname = \"j" + number + "\"\nop = \"kernel\"\nsource = \"" +
              (order[k] == 'b' ? "bad" : "good" + number) + ".cl\"\nbindings = [ { output = \"y" + number +
              ".npy\", shape = [256], dtype = \"float32\" } ]\ngrid = [4, 1, 1]\ndevice = \"amdgpu:0\"\n";
    }
    const TemporaryFolder cache;
    std::vector<std::string> words = {"simulate",
                                      "--",
                                      std::string(KILN_BINARY_DIR) + "/bin/kiln",
                                      "run",
                                      folder_.write("jobs.toml", text),
                                      "--cache-dir",
                                      cache / "cache",
                                      "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Finished ran = run_kiln(words, {.environment = {{"KILN_SIM_LOCKUP_MS", "20"}, {"KILN_SIM_FAULT", fault}}});
    INFO(order << " " << fault << ": " << ran.err << ran.out);
    REQUIRE((ran.status == 0 || ran.status == 3));
    const auto report = ran.json()["jobs"];
    long failed = 0;
    for (std::size_t k = 0; k < order.size(); ++k) {
      const bool ok = report[k]["status"] == "ok";
      failed += ok ? 0 : 1;
      if (order[k] == 'b' || fail < 0) CHECK(ok == (order[k] != 'b'));
      if (ok) continue;
      const auto error = report[k]["error"].get<std::string>();
      CHECK_THAT(error, Contains("amdgpu:0"));
      constexpr const char* cause = "was stopped by a fault";
      CHECK(error.find(cause) == error.rfind(cause));  // told once
    }
    if (fail >= 0) CHECK(failed == fail);
  }

 private:
  static constexpr int most = 8;
  TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("simulated fault: a kernel that faults costs its own job, not those behind it or in flight beside it") {
  if (!there_is_a_compiler()) return;
  const KernelJobs kernels;
  kernels.check("bgggg", {});
  kernels.check("ggbgg", {});
  kernels.check("bgbgg", {});
  kernels.check("bgg", only_there);
  kernels.check("bggggg", {"--jobs", "4"});
  kernels.check("gbgggbg", {"--jobs", "8"});
}

TEST_CASE("simulated fault: what the device is told once costs one job at most, where no other device can serve") {
  if (!there_is_a_compiler()) return;
  const KernelJobs kernels;
  kernels.check("ggg", {}, "enomem@1", 0);
  kernels.check("gggg", {"--jobs", "4"}, "enomem@2", 0);
  kernels.check("ggg", {}, "hang@1", 1);
  kernels.check("gggg", {"--jobs", "4"}, "vram_lost@1", 1);
  kernels.check("ggg", only_there, "page_fault@2", 1);
  kernels.check("ggg", {}, "cancelled@1", 0);
  kernels.check("ggg", {}, "unplugged@1", 3);
}
