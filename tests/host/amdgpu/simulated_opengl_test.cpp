// The OpenGL plugin on Mesa's radeonsi, on the simulated device: convolutions by storage buffers, and what one process
// leaves for the next: the programs and the driver's machine code for them.
#include "host/kiln_process.hpp"

#include <zstd.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <string_view>

using namespace kiln::test;

namespace {

// A plain kernel, and one whose workgroups share memory between barriers: 49 MMAC are what that one pays for.
const std::string convolutions = R"([[job]]
name = "plain"
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

[[job]]
name = "shared"
op = "conv2d"
c = 256
h = 28
w = 28
k = 256
r = 1
s = 1
input = "random:1"
weights = "random:2"
verify = true
)";

// Mesa keeps an entry as a header and a zstd frame.
std::string unpacked(const std::filesystem::path& entry) {
  std::ifstream file(entry, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  const std::size_t at = bytes.find("\x28\xb5\x2f\xfd");
  if (at == std::string::npos) return {};
  const auto size = ZSTD_getFrameContentSize(bytes.data() + at, bytes.size() - at);
  if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR || size > 1 << 24) return {};
  std::string text(size, '\0');
  const std::size_t got = ZSTD_decompress(text.data(), text.size(), bytes.data() + at, bytes.size() - at);
  return ZSTD_isError(got) != 0 ? std::string() : text;
}

// What the driver compiles for itself, beside the jobs and on a thread of its own, is smaller: a process may end before
// it is kept.
constexpr std::size_t least_program_bytes = 4096;

// The entries of the driver's cache that hold programs' machine code: an ELF file for an AMD GPU, e_machine 224.
std::set<std::filesystem::path> machine_code(const std::filesystem::path& cache) {
  using namespace std::string_view_literals;
  std::set<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(cache / "driver")) {
    if (!entry.is_regular_file()) continue;
    const std::string text = unpacked(entry.path());
    const std::size_t elf = text.find("\x7f\x45LF"sv);
    const bool code = elf != std::string::npos && text.compare(elf + 18, 2, "\xe0\0"sv) == 0;
    if (code && text.size() >= least_program_bytes) found.insert(entry.path());
  }
  return found;
}

Finished run_on_radeonsi(const std::string& target, const std::filesystem::path& job,
                         const std::filesystem::path& cache) {
  return run_kiln({"simulate", "--target", target, "--", std::string(KILN_BINARY_DIR) + "/bin/kiln", "run",
                   job.string(), "--device", "opengl:0", "--json", "--cache-dir", cache.string()});
}

void check_jobs(const nlohmann::json& json, const std::string& tier) {
  REQUIRE(json["jobs"].size() == 2);
  for (const auto& job : json["jobs"]) {
    INFO(job);
    CHECK(job["status"] == "ok");
    CHECK(job["verified"] == true);
    CHECK(job["max_rel_error"].get<double>() <= job["error_bound"].get<double>());
    CHECK(job["device"]["kind"] == "simulated");
    CHECK(job["program"]["tier"] == tier);
  }
  CHECK(json["jobs"][0]["variant"] == "direct/plain");
  CHECK(json["jobs"][1]["variant"].get<std::string>().rfind("implicit/shared:", 0) == 0);
}

void check_target(const std::string& target, const std::string& name) {
  const TemporaryFolder folder;
  const auto job = folder.write("job.toml", convolutions);
  const auto cache = folder / "cache";
  const Finished first = run_on_radeonsi(target, job, cache);
  INFO(first.err << first.out);
  REQUIRE(first.status == 0);
  const auto cold = first.json();
  CHECK_THAT(cold["jobs"][0]["device"]["name"].get<std::string>(), Catch::Contains(name));
  check_jobs(cold, "built");
  const auto programs = cold["cache"]["builds"].get<std::size_t>();
  CHECK(programs >= 2);
  CHECK(cold["cache"]["driver_cache"] == "adopted");
  const auto code = machine_code(cache);
  CHECK(code.size() >= programs);

  const Finished second = run_on_radeonsi(target, job, cache);
  INFO(second.err << second.out);
  REQUIRE(second.status == 0);
  check_jobs(second.json(), "disk");
  CHECK(second.json()["cache"]["builds"] == 0);
  CHECK(second.json()["cache"]["disk_hits"] == programs);
  CHECK(machine_code(cache) == code);  // the driver found all that it asked for

  // The control: where the code is taken away, the driver writes it anew.
  for (const auto& entry : code) std::filesystem::remove(entry);
  const Finished third = run_on_radeonsi(target, job, cache);
  REQUIRE(third.status == 0);
  check_jobs(third.json(), "disk");
  const auto again = machine_code(cache);
  CHECK(again.size() >= programs);
  CHECK(std::includes(code.begin(), code.end(), again.begin(), again.end()));
}

}  // namespace

TEST_CASE("simulated opengl: convolutions are verified, and machine code serves the next process") {
  const Finished devices =
      run_kiln({"simulate", "--", std::string(KILN_BINARY_DIR) + "/bin/kiln", "devices", "--json"});
  INFO(devices.err);
  REQUIRE(devices.status == 0);
  const auto listed = devices.json()["devices"];
  const auto radeonsi = std::find_if(listed.begin(), listed.end(), [](const auto& device) {
    return device["id"] == "opengl:0" && device["kind"] == "simulated";
  });
  if (radeonsi == listed.end()) {
    WARN("skipped: no radeonsi on this machine: " << listed);
    return;
  }
  check_target("gfx1100", "gfx1100");
  check_target("gfx1030", "navi21");
}
