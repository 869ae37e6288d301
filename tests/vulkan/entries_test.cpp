// Entries of the cache through the command: a stale, altered, exchanged or crashing one never gives a result, and the
// program is built anew. Each run is a process of its own.
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "host/kiln_process.hpp"
#include "support/test_length.hpp"
#include "vulkan/vulkan_under_test.hpp"

namespace kiln::vulkan {
namespace {

namespace fs = std::filesystem;
using support::Vulkan;
using test::Finished;
using test::TemporaryFolder;

// A folder with two jobs of one source and another constant each, and a cache.
class Runs {
 public:
  Runs() {
    folder_.write("scale.comp",
                  "#version 430\n"
                  "layout(local_size_x = 64) in;\n"
                  "layout(std430, binding = 0) buffer X { float x[]; };\n"
                  "void main() { x[gl_GlobalInvocationID.x] = float(gl_GlobalInvocationID.x) * FACTOR; }\n");
    std::string text;
    for (const int factor : {2, 3}) {
      const std::string n = std::to_string(factor);
      text += "[[job]]\nname = \"by" + n + "\"\nop = \"kernel\"\nsource = \"scale.comp\"\nconstants = { FACTOR = " + n +
              ".0 }\ngrid = [1, 1, 1]\nbindings = [ { output = \"by" + n + ".bin\", shape = [64] } ]\n";
    }
    folder_.write("jobs.toml", text);
  }

  Finished run(const std::map<std::string, std::string>& environment = {}) const {
    test::ProcessOptions options;
    options.environment = environment;
    // The loader unloads the driver before leaks are looked for, so its leaks cannot be told by its name. A crash ends
    // by its signal.
    options.environment.emplace("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0:handle_segv=0:handle_abort=0");
    fs::remove(folder_ / "by2.bin");
    fs::remove(folder_ / "by3.bin");
    return test::run_kiln({"run", folder_ / "jobs.toml", "--json", "--device", "vulkan:0", "--cache-dir",
                           folder_ / "cache", "--set", "plugins.load=[\"cpu\", \"vulkan\", \"dynamic_shaders\"]",
                           "--set", "plugin.vulkan.vulkan_library=\"" KILN_FAULTY_LOADER "\""},
                          options);
  }

  // A run that ended well, with these counts.
  void expect(std::uint64_t disk_hits, std::uint64_t builds,
              const std::map<std::string, std::string>& environment = {}) const {
    const Finished finished = run(environment);
    INFO(finished.err << finished.out);
    REQUIRE(finished.status == 0);
    CHECK(finished.json()["cache"]["disk_hits"] == disk_hits);
    CHECK(finished.json()["cache"]["builds"] == builds);
    for (const int factor : {2, 3}) {
      std::vector<float> expected, found(64);
      for (int i = 0; i < 64; ++i) expected.push_back(static_cast<float>(i * factor));
      std::ifstream file(folder_ / ("by" + std::to_string(factor) + ".bin"), std::ios::binary);
      file.read(reinterpret_cast<char*>(found.data()), 256);
      CHECK(found == expected);
    }
  }

  std::vector<fs::path> entries() const {
    std::vector<fs::path> found;
    for (const auto& each : fs::recursive_directory_iterator(folder_ / "cache")) {
      if (each.path().extension() == ".bin") found.push_back(each.path());
    }
    std::ranges::sort(found);
    return found;
  }

 private:
  TemporaryFolder folder_;
};

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void replace(const fs::path& path, const std::string& bytes) {
  fs::remove(path);
  std::ofstream(path, std::ios::binary) << bytes;
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
}

}  // namespace

TEST_CASE("vulkan entries: a second process takes both, and another driver setting neither", "[vulkan][entries]") {
  if (!Vulkan::instance().usable()) return;
  const Runs runs;
  runs.expect(0, 2);
  runs.expect(2, 0);
  runs.expect(0, 2, {{"RADV_DEBUG", "nothreadllvm"}, {"LP_NATIVE_VECTOR_WIDTH", "128"}});
  runs.expect(2, 0);
}

// A program may have read them: gl_MaxComputeWorkGroupCount.
TEST_CASE("vulkan entries: a device of the same driver with other limits takes neither", "[vulkan][entries]") {
  if (!Vulkan::instance().usable()) return;
  const Runs runs;
  runs.expect(0, 2);
  runs.expect(0, 2, {{"FAULTY_VULKAN_WORKGROUPS", "4321"}});
  runs.expect(2, 0, {{"FAULTY_VULKAN_WORKGROUPS", "4321"}});
  runs.expect(2, 0);
}

TEST_CASE("vulkan entries: an altered, cut or exchanged one is rejected and built anew", "[vulkan][entries]") {
  if (!Vulkan::instance().usable()) return;
  const Runs runs;
  runs.expect(0, 2);
  const std::vector<fs::path> entries = runs.entries();
  REQUIRE(entries.size() == 2);
  const std::string first = bytes_of(entries[0]), second = bytes_of(entries[1]);
  for (const std::size_t part : {0u, 1u, 3u, 5u, 7u}) {  // eighths of the file
    INFO("byte " << first.size() * part / 8);
    std::string altered = first;
    altered[first.size() * part / 8] = static_cast<char>(altered[first.size() * part / 8] ^ 0x20);
    replace(entries[0], altered);
    runs.expect(1, 1);
  }
  replace(entries[0], first.substr(0, first.size() - 1));
  runs.expect(1, 1);
  replace(entries[0], second);
  replace(entries[1], first);
  runs.expect(0, 2);
  runs.expect(2, 0);
}

TEST_CASE("vulkan entries: one that crashes the driver kills one process, then it is quarantined",
          "[vulkan][entries]") {
  if (!Vulkan::instance().usable()) return;
  const Runs runs;
  runs.expect(0, 2);
  // Each death marks the program that was being loaded, so both are marked after two. From then on both are tried in a
  // child, which dies; building anew crashes in a child, too, and the job's error says so.
  const std::map<std::string, std::string> crash{{"FAULTY_VULKAN_PIPELINES", "crash"}};
  const Finished first = runs.run(crash);
  CHECK(first.status < 0);
  Finished tried = runs.run(crash);
  if (tried.status < 0) tried = runs.run(crash);
  INFO(tried.err << tried.out);
  CHECK(tried.status > 0);
  const Finished served = runs.run();
  INFO(served.err << served.out);
  REQUIRE(served.status == 0);
  CHECK(served.json()["cache"]["rejected"]["quarantined"] >= 1);
  CHECK(served.json()["cache"]["builds"] >= 1);
}

TEST_CASE("vulkan entries: a shortage of memory while one is loaded does not remove it", "[vulkan][entries]") {
  if (!Vulkan::instance().usable()) return;
  const Runs runs;
  runs.expect(0, 2);
  const Finished finished = runs.run({{"FAULTY_VULKAN_PIPELINES", "oom"}});
  INFO(finished.err << finished.out);
  CHECK(finished.status > 0);
  CHECK_THAT(finished.out, Catch::Contains("VK_ERROR_OUT_OF_DEVICE_MEMORY"));
  runs.expect(2, 0);
}

// libkiln_glslang.so lies in the folder above the plugin's own, and here it does not.
TEST_CASE("vulkan entries: a process that only loads programs needs no compiler, and one that builds names it",
          "[vulkan][entries]") {
  if (!Vulkan::instance().usable()) return;
  const Runs runs;
  runs.expect(0, 2);
  const TemporaryFolder apart;
  fs::create_directory(apart / "plugins");
  for (const char* name : {"cpu.so", "vulkan.so", "dynamic_shaders.so"}) {
    fs::copy_file(fs::path(KILN_PLUGIN_DIR) / name, apart / "plugins" / name);
  }
  const std::map<std::string, std::string> there{{"KILN_PLUGIN_PATH", apart / "plugins"}};
  runs.expect(2, 0, there);
  for (const fs::path& entry : runs.entries()) fs::remove(entry);
  const Finished finished = runs.run(there);
  INFO(finished.err << finished.out);
  CHECK(finished.status == 3);
  CHECK_THAT(finished.out,
             Catch::Contains("the GLSL compiler cannot be loaded") && Catch::Contains("libkiln_glslang.so"));
}

}  // namespace kiln::vulkan
