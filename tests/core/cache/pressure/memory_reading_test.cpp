// What the system says of memory, told by files as the kernel writes them, and by files that it does not.
#include "base/os/memory_pressure.hpp"
#include "base/os/process_limits.hpp"
#include "core/cache/workplace.hpp"

#include <catch2/catch.hpp>

namespace kiln::test {
namespace {

constexpr const char* stalls =
    "some avg10=12.34 avg60=1.00 avg300=0.10 total=1\nfull avg10=99.00 avg60=0 avg300=0 total=0\n";

struct Files {
  CacheTestFolder folder;
  MemorySources sources{folder.path() / "stalls", folder.path() / "membership", folder.path() / "groups"};

  void write(const std::filesystem::path& path, std::string_view text) const {
    std::filesystem::create_directories((folder.path() / path).parent_path());
    overwrite(folder.path() / path, std::as_bytes(std::span(text)));
  }
  MemoryReading read() const { return read_memory(sources); }
};

TEST_CASE("cache::memory_reading: the group of a controller, in a list of memberships") {
  const std::string memberships =
      "memory\nmemory:\n9:memory\n7:cpu,cpuacct:/one\n4:a,memory,b:/two:x\n3:memory:/three\n0::/four";
  CHECK(group_path_in(memberships, "cpu") == "/one");
  CHECK(group_path_in(memberships, "cpuacct") == "/one");
  CHECK(group_path_in(memberships, "memory") == "/two:x");
  CHECK(group_path_in(memberships, "") == "/four");
  CHECK(group_path_in("0::/four\n", "") == "/four");
  CHECK_FALSE(group_path_in(memberships, "mem"));
  CHECK_FALSE(group_path_in("memory\nmemory:\n9:memory\n", "memory"));
  CHECK_FALSE(group_path_in("", ""));
}

TEST_CASE("cache::memory_reading: a group and those above it, up to the root of what is mounted") {
  const auto visited = [](const std::string& path) {
    std::vector<std::string> folders;
    for_each_group("/mounted", path, [&](const std::filesystem::path& folder) { folders.push_back(folder); });
    return folders;
  };
  CHECK(visited("/a/b") == std::vector<std::string>{"/mounted/a/b", "/mounted/a", "/mounted/"});
  CHECK(visited("/a/../b") == std::vector<std::string>{"/mounted/b", "/mounted/"});
  CHECK(visited("/../a").empty());
  CHECK(visited("../a").empty());
}

TEST_CASE("cache::memory_reading: nothing is there, or nothing of sense: nothing is said") {
  const Files files;
  CHECK_FALSE(files.read().stalled_percent);
  CHECK_FALSE(files.read().group);
  for (const char* text : {"", "some", "some avg10=", "some avg10=x", "some avg10=-1", "some avg10=101",
                           "full avg10=50\n", "lonesome avg10=50\n"}) {
    CAPTURE(text);
    files.write("stalls", text);
    CHECK_FALSE(files.read().stalled_percent);
  }
  for (const char* text : {"0", "0:", "0::", "0::/", "0::/../../etc", "x", ":::\n"}) {
    CAPTURE(text);
    files.write("membership", text);
    CHECK_FALSE(files.read().group);
  }
}

TEST_CASE("cache::memory_reading: stalls: some, of ten seconds") {
  const Files files;
  files.write("stalls", stalls);
  CHECK(*files.read().stalled_percent == 12.34);
}

TEST_CASE("cache::memory_reading: version 2: the fullest of the group and those above it, without pages of files") {
  const Files files;
  files.write("membership", "0::/user/job\n");
  files.write("groups/user/job/memory.max", "max\n");
  files.write("groups/user/job/memory.current", "500\n");
  CHECK_FALSE(files.read().group);
  files.write("groups/user/memory.max", "1000\n");
  files.write("groups/user/memory.current", "900\n");
  files.write("groups/user/memory.stat", "anon 600\ninactive_file 100\nactive_file 50\n");
  REQUIRE(files.read().group);
  CHECK(files.read().group->limit == 1000);
  CHECK(files.read().group->used == 750);
  files.write("groups/user/job/memory.high", "600\n");  // throttled from there on
  CHECK(files.read().group->limit == 600);
  CHECK(files.read().group->used == 500);
  files.write("groups/user/job/memory.pressure", "some avg10=40.00 avg60=0 avg300=0 total=0\n");
  files.write("stalls", stalls);
  CHECK(*files.read().stalled_percent == 40);
}

TEST_CASE("cache::memory_reading: version 1: its own tree, its own words, its own way to say that there is no limit") {
  const Files files;
  files.write("membership", "7:cpu,cpuacct:/\n4:memory:/box\n0::/\n");
  files.write("groups/memory/box/memory.limit_in_bytes", "9223372036854771712\n");
  files.write("groups/memory/box/memory.usage_in_bytes", "70\n");
  CHECK_FALSE(files.read().group);
  files.write("groups/memory/box/memory.limit_in_bytes", "100\n");
  files.write("groups/memory/box/memory.stat", "inactive_file 1\ntotal_inactive_file 20\ntotal_active_file 10\n");
  REQUIRE(files.read().group);
  CHECK(files.read().group->limit == 100);
  CHECK(files.read().group->used == 40);
}

TEST_CASE("cache::memory_reading: in a container the group is at the root of what is mounted") {
  const Files files;
  files.write("membership", "0::/as/the/host/names/it\n");
  files.write("groups/memory.max", "100\n");
  files.write("groups/memory.current", "60\n");
  REQUIRE(files.read().group);
  CHECK(files.read().group->used == 60);
}

TEST_CASE("cache::memory_reading: this machine's files are read without harm") {
  const MemoryReading reading = read_memory({});
  if (reading.stalled_percent) CHECK(*reading.stalled_percent <= 100);
  if (reading.group) CHECK(reading.group->limit > 0);
}

}  // namespace
}  // namespace kiln::test
