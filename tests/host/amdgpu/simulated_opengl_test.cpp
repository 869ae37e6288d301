// The OpenGL plugin on Mesa's radeonsi, on the simulated device: convolutions by storage buffers, and what one process
// leaves for the next: the programs and the driver's machine code for them.
#include "host/kiln_process.hpp"
#include "host/stored_programs.hpp"

#include <zstd.h>
#include <catch2/catch.hpp>

#include <algorithm>
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
std::string unpacked(const kiln::DriverFile& file) {
  const std::string bytes(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  const std::size_t at = bytes.find("\x28\xb5\x2f\xfd");
  if (at == std::string::npos) return {};
  const auto size = ZSTD_getFrameContentSize(bytes.data() + at, bytes.size() - at);
  if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR || size > 1 << 24) return {};
  std::string text(size, '\0');
  const std::size_t got = ZSTD_decompress(text.data(), text.size(), bytes.data() + at, bytes.size() - at);
  return ZSTD_isError(got) != 0 ? std::string() : text;
}

// Of the entry's driver files, those that hold machine code: an ELF file for an AMD GPU, e_machine 224.
std::ptrdiff_t machine_codes(const kiln::ProgramBinary& program) {
  using namespace std::string_view_literals;
  return std::ranges::count_if(program.driver_files, [](const kiln::DriverFile& file) {
    const std::string text = unpacked(file);
    const std::size_t elf = text.find("\x7f\x45LF"sv);
    return elf != std::string::npos && text.compare(elf + 18, 2, "\xe0\0"sv) == 0;
  });
}

Finished run_on_radeonsi(const std::string& target, const std::filesystem::path& job,
                         const std::filesystem::path& cache, const std::filesystem::path& key) {
  return run_kiln({"simulate", "--target", target, "--", std::string(KILN_BINARY_DIR) + "/bin/kiln", "run",
                   job.string(), "--device", "opengl:0", "--json", "--cache-dir", cache.string()},
                  {.environment = {{"KILN_KEY_FILE", key}}});
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
  const auto cache = folder / "cache", key = folder / "key";
  const Finished first = run_on_radeonsi(target, job, cache, key);
  INFO(first.err << first.out);
  REQUIRE(first.status == 0);
  const auto cold = first.json();
  CHECK_THAT(cold["jobs"][0]["device"]["name"].get<std::string>(), Catch::Contains(name));
  check_jobs(cold, "built");
  const auto programs = cold["cache"]["builds"].get<std::size_t>();
  CHECK(programs >= 2);
  CHECK(cold["cache"]["driver_cache"] == "adopted");
  const auto entries = entry_files(cache);
  CHECK(entries.size() == programs);
  for (const auto& entry : entries) CHECK(machine_codes(stored_program(entry, entry_key(key))) >= 1);

  const Finished second = run_on_radeonsi(target, job, cache, key);
  INFO(second.err << second.out);
  REQUIRE(second.status == 0);
  check_jobs(second.json(), "disk");
  CHECK(second.json()["cache"]["builds"] == 0);
  CHECK(second.json()["cache"]["disk_hits"] == programs);
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
