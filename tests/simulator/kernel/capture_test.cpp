#include <amdgpu_drm.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "simulator/kernel/rings.hpp"

namespace kiln::simulator::kernel::test {
namespace {

constexpr std::uint64_t start = 0xffff'8000'0010'0000;

std::string contents(const std::filesystem::path& file) {
  std::ifstream from(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(from), {}};
}

struct Folder {
  Folder() { REQUIRE(mkdtemp(path.data()) != nullptr); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path = (std::filesystem::temp_directory_path() / "kiln-capture-XXXXXX").string();
};

// Two buffers side by side in the GPU's addresses, not in the host's, and nothing behind them.
struct Memory {
  Memory() {
    for (std::size_t i = 0; i < 2; ++i) {
      bytes[i].fill(std::byte(0x11 * (i + 1)));
      buffers[i] = {i + 1, bytes[i].data(), bytes[i].size(), false};
    }
    std::vector<Mapping> mappings;
    for (std::size_t i = 0; i < 2; ++i) {
      Mapping mapping;
      mapping.start = start + i * 4096;
      mapping.bytes = 4096;
      mapping.rights.read = true;
      mapping.buffer = BufferRef(&buffers[i], [](const BufferMemory*) {});
      mappings.push_back(mapping);
    }
    space = std::make_shared<const AddressSpace>(std::move(mappings));
  }
  std::array<std::array<std::byte, 4096>, 2> bytes;
  std::array<BufferMemory, 2> buffers;
  std::shared_ptr<const AddressSpace> space;
};

PendingJob job_of(const Memory& memory, std::vector<IndirectBuffer> buffers) {
  PendingJob job;
  job.ring.ip = AMDGPU_HW_IP_COMPUTE;
  job.submission = 7;
  job.buffers = std::move(buffers);
  job.space = memory.space;
  return job;
}

}  // namespace

TEST_CASE("simulated kernel: command buffers are captured as they lie in memory") {
  const Folder folder;
  const Memory memory;
  Journal journal(folder.path + "/log");
  Capture capture(folder.path, journal);
  capture.write(job_of(memory, {{start + 16, 32}, {start + 4088, 16}}));
  CHECK(contents(folder.path + "/000007-compute-0.pm4") == std::string(32, '\x11'));
  CHECK(contents(folder.path + "/000007-compute-1.pm4") == std::string(8, '\x11') + std::string(8, '\x22'));
  CHECK(contents(folder.path + "/log").empty());
}

TEST_CASE("simulated kernel: what cannot be captured whole is told of") {
  const Folder folder;
  const Memory memory;
  Journal journal(folder.path + "/log");
  Capture(folder.path, journal).write(job_of(memory, {{start + 8184, 16}}));
  CHECK_THAT(contents(folder.path + "/log"), Catch::Contains("capture: " + folder.path + "/000007-compute-0.pm4"));
  Capture(folder.path + "/absent", journal).write(job_of(memory, {{start, 16}}));
  CHECK_THAT(contents(folder.path + "/log"), Catch::Contains("/absent/000007-compute-0.pm4 is not whole"));
}

TEST_CASE("simulated kernel: without a folder nothing is captured") {
  const Folder folder;
  const Memory memory;
  Journal journal(folder.path + "/log");
  Capture("", journal).write(job_of(memory, {{start, 16}}));
  std::size_t files = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder.path)) files += file.path().extension() == ".pm4";
  CHECK(files == 0);
}

}  // namespace kiln::simulator::kernel::test
