// What the system says of memory, told by files as the kernel writes them, and by files that it does not.
#include "base/os/memory_pressure.hpp"
#include "base/os/process_limits.hpp"
#include "core/cache/workplace.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

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
  CHECK(visited("/") == std::vector<std::string>{"/mounted/"});
  std::string deep;
  for (int level = 0; level < 70; ++level) deep += "/d";
  CHECK(visited(deep).size() == 64);
  CHECK(visited(deep).front() == "/mounted" + deep);
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
  files.write("stalls", "some avg10=100.00\n");
  CHECK(files.read().stalled_percent == 100);
  files.write("stalls", "full avg10=7\nsome avg10=0.00\n");
  CHECK(files.read().stalled_percent == 0);
  files.write("stalls", "lonesome avg10=50\nsome avg10=3\n");
  CHECK(files.read().stalled_percent == 3);
  files.write("membership", "0::/job\n");
  files.write("groups/job/memory.pressure", "some avg10=2.00\n");
  CHECK(files.read().stalled_percent == 3);  // the worse of both
  files.write("groups/job/memory.pressure", "some avg10=4.00\n");
  CHECK(files.read().stalled_percent == 4);
  files.write("stalls", "");
  CHECK(files.read().stalled_percent == 4);
  files.write("groups/job/memory.pressure", "some avg10=0.50\n");
  CHECK(files.read().stalled_percent == 0.5);
}

TEST_CASE("cache::memory_reading: limits at their bounds, and which group is the fullest") {
  const Files files;
  files.write("membership", "0::/outer/inner\n");
  const auto use = [&](const std::string& group, const std::string& limit, const std::string& used,
                       const std::string& pages) {
    files.write("groups/" + group + "/memory.max", limit);
    files.write("groups/" + group + "/memory.current", used);
    files.write("groups/" + group + "/memory.stat", pages);
    const auto found = files.read().group;
    return found ? std::to_string(found->used) + " of " + std::to_string(found->limit) : "none";
  };
  CHECK(use("outer", "0", "10", "") == "none");
  CHECK(use("outer", "1", "10", "") == "10 of 1");
  CHECK(use("outer", "1152921504606846975", "10", "") == "10 of 1152921504606846975");
  CHECK(use("outer", "1152921504606846976", "10", "") == "none");  // 2^60
  CHECK(use("outer", "100", "", "") == "none");
  CHECK(use("outer", "100", "50", "inactive_file 60\nactive_file 5\n") == "0 of 100");
  CHECK(use("outer", "100", "50", "inactive_file 20\nactive_file 30\n") == "0 of 100");
  CHECK(use("outer", "100", "50", "anon 1\ninactive_file_other 3\ninactive_file 4\nactive_file 5\n") == "41 of 100");
  CHECK(use("outer", "100", "50", "") == "50 of 100");
  CHECK(use("outer/inner", "10", "5", "") == "5 of 10");  // as full: the inner one, which is asked first
  CHECK(use("outer/inner", "10", "6", "") == "6 of 10");
  CHECK(use("outer/inner", "10", "4", "") == "50 of 100");
  files.write("groups/outer/inner/memory.max", "max");
  files.write("groups/outer/inner/memory.high", "5");  // the only limit
  CHECK(files.read().group->limit == 5);
  files.write("groups/outer/inner/memory.max", "4");
  CHECK(files.read().group->limit == 4);
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
