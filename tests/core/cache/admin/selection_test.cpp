// What names a program, and what a walk through the folder of a cache finds: each file by its name and its age.
#include "cache_admin/selection.hpp"
#include "base/os/private_folder.hpp"
#include "cache/disk_bound.hpp"
#include "cache_admin/explanation.hpp"
#include "core/cache/workplace.hpp"
#include "support/in_child.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

Digest digest_with(std::uint8_t first, std::uint8_t last) {
  Digest digest{};
  digest.bytes.front() = first;
  digest.bytes.back() = last;
  return digest;
}

constexpr const char* device_folder = "a_card-0123456789abcdef-fedcba9876543210";

// A cache's folder with files of given sizes and ages.
struct StoredFiles {
  CacheTestFolder folder;
  const UniqueFd root{::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};

  StoredFiles() { chmod(folder.path().c_str(), 0700); }

  // age_s: seconds since it was written.
  fs::path write(const fs::path& name, std::size_t bytes, std::int64_t age_s = 0) const {
    const fs::path path = folder.path() / name;
    for (fs::path parent = path.parent_path(); parent != folder.path(); parent = parent.parent_path()) {
      fs::create_directories(parent);
      chmod(parent.c_str(), 0700);
    }
    std::ofstream(path) << std::string(bytes, 'x');
    const timespec at{std::time(nullptr) - age_s, 0};
    const timespec times[] = {at, at};
    REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
    return path;
  }
  fs::path write(const Digest& digest, std::string_view suffix, std::size_t bytes, std::int64_t age_s = 0) const {
    return write(fs::path(device_folder) / subfolder_of(digest) / file_name_of(digest, suffix), bytes, age_s);
  }
};

TEST_CASE("cache::selection: four to 64 hexadecimal digits may be a key, and a label is one up to a slash") {
  for (const char* key : {"0123", "abcdef", "0000000000000000000000000000000000000000000000000000000000000000"}) {
    CHECK(may_be_key(key));
  }
  for (const char* other : {"", "012", "ABCD", "012g", "01/3", "012`",
                            "012:", "00000000000000000000000000000000000000000000000000000000000000000"}) {
    CAPTURE(other);
    CHECK_FALSE(may_be_key(other));
  }
  CHECK(is_label_of("conv2d", "conv2d"));
  CHECK(is_label_of("conv2d", "conv2d/3x3/tiled"));
  CHECK(is_label_of("conv2d/3x3", "conv2d/3x3/tiled"));
  CHECK_FALSE(is_label_of("", "conv2d"));
  CHECK_FALSE(is_label_of("conv", "conv2d"));
  CHECK_FALSE(is_label_of("conv2d/3x3", "conv2d"));
  SelectedProgram program;
  program.entry.digest = digest_with(0xab, 1);
  program.description.label = "beef/conv";
  CHECK(is_named("beef", program));  // a label, though it may be a key
  CHECK(is_named("ab00", program));
  CHECK_FALSE(is_named("ab01", program));
  CHECK_FALSE(is_named("ab0", program));
}

TEST_CASE("cache::selection: of many programs eight are listed, with what tells them apart") {
  std::vector<SelectedProgram> programs;
  for (std::uint8_t i = 0; i < 9; ++i) {
    SelectedProgram& program = programs.emplace_back();
    program.area = i == 1 ? Area::pending : Area::stored;
    program.folder = "f";
    program.entry.digest = digest_with(static_cast<std::uint8_t>(0xa0 + i), 0);
    program.description.label = i == 0 ? "" : "label " + std::to_string(i);
  }
  const std::string nine = list_of(programs);
  CHECK_THAT(nine,
             Catch::StartsWith("9 programs: a00000000000 (no label, in f), a10000000000 (label 1, in f, pending), "
                               "a20000000000 (label 2, in f), "));
  CHECK_THAT(nine, Catch::EndsWith("a70000000000 (label 7, in f), …"));
  programs.pop_back();
  CHECK_THAT(list_of(programs), Catch::StartsWith("8 programs: ") && Catch::EndsWith("a70000000000 (label 7, in f)"));
  programs.resize(1);
  CHECK(list_of(programs) == "1 programs: a00000000000 (no label, in f)");
}

TEST_CASE("cache::selection: why a program is set aside, and how it comes back") {
  AsideProgram program;
  program.key = digest_with(0xab, 1);
  program.why = "a process died";
  CHECK(words_of(program) == "a process died; the next use tries it in a child process");
  program.quarantined = true;
  program.until_s = 1'000'000'000;
  CHECK(words_of(program) == "a process died; until 2001-09-09 01:46 UTC, or until `kiln cache release ab0000000000`");
}

TEST_CASE("cache::survey: each program counts with its .meta, and what is set aside with its time") {
  const StoredFiles files;
  const Digest both = digest_with(0x12, 1), alone = digest_with(0x12, 2), meta = digest_with(0x34, 3);
  const Digest suspect = digest_with(0x56, 4), quarantined = digest_with(0x56, 5);
  files.write(both, ".bin", 100, 50);
  files.write(both, ".meta", 7, 20);
  files.write(alone, ".bin", 200, 90);
  files.write(meta, ".meta", 9);
  files.write(suspect, ".suspect", 300, 1000);
  files.write(quarantined, ".quarantined", 400, 2000);
  files.write(both, ".other", 5);
  files.write(fs::path(device_folder) / "12" / "short.bin", 3);
  files.write(fs::path(device_folder) / "manifest.json", 1000);
  files.write(fs::path(device_folder) / "1g" / "x.bin", 1000);
  files.write(fs::path("no_device") / "12" / (both.hex() + ".bin"), 1000);
  const std::int64_t now_s = std::time(nullptr);
  const Survey found = survey(files.root.get(), Sweep::no);
  CHECK(found.failure.ok());
  CHECK(found.folders == std::vector<std::string>{device_folder});
  CHECK(found.bytes == 100 + 7 + 200 + 9 + 300 + 400 + 5 + 3);
  REQUIRE(found.entries.size() == 3);
  const auto entry = [&](const Digest& digest) {
    return *std::ranges::find(found.entries, digest, &StoredEntry::digest);
  };
  CHECK(entry(both).bytes == 107);
  CHECK(entry(both).program);
  CHECK(std::abs(entry(both).last_used_ns / 1'000'000'000 - (now_s - 20)) <= 600);  // of the later file
  CHECK(entry(both).last_used_ns > entry(alone).last_used_ns);
  CHECK(entry(alone).bytes == 200);
  CHECK(entry(alone).program);
  CHECK(entry(meta).bytes == 9);
  CHECK_FALSE(entry(meta).program);
  REQUIRE(found.aside.size() == 2);
  for (const AsideEntry& one : found.aside) {
    CHECK(one.folder == 0);
    CHECK(one.digest == (one.quarantined ? quarantined : suspect));
    CHECK(std::abs(one.since_s - (now_s - (one.quarantined ? 2000 : 1000))) <= 600);
  }
}

TEST_CASE("cache::survey: a sweep removes what killed processes left, and old quarantines, and nothing younger") {
  const StoredFiles files;
  constexpr std::int64_t week_s = 7 * 24 * 3600, slack_s = 300;
  const Digest old = digest_with(0x12, 1), young = digest_with(0x12, 2), ahead = digest_with(0x12, 3);
  const fs::path inner = fs::path(device_folder) / "12";
  const std::vector<fs::path> kept{
      files.write(young, ".quarantined", 1, week_s - slack_s),
      files.write(young, ".suspect", 1, week_s - slack_s),
      files.write(old, ".bin", 1, 2 * week_s),
      files.write(inner / ".1-2.tmp", 1, 0),
      files.write(".1-2.tmp", 1, 0),
      files.write(fs::path(device_folder) / ".1-2.tmp", 1, 0),
      files.write(inner / "other.file", 1, 2 * week_s),
  };
  const std::vector<fs::path> removed{
      files.write(old, ".quarantined", 1, week_s + slack_s),
      files.write(old, ".suspect", 1, week_s + slack_s),
      files.write(ahead, ".suspect", 1, -week_s - slack_s),  // the clock was set back since
      files.write(inner / ".3-4.tmp", 1, 600 + slack_s),
      files.write(".3-4.tmp", 1, 600 + slack_s),
      files.write(fs::path(device_folder) / ".3-4.tmp", 1, 600 + slack_s),
  };
  const auto there = [](const std::vector<fs::path>& paths) {
    return static_cast<std::size_t>(
        std::ranges::count_if(paths, [](const fs::path& path) { return fs::exists(path); }));
  };
  CHECK(survey(files.root.get(), Sweep::no).aside.size() == 5);
  CHECK(there(removed) == removed.size());
  survey(files.root.get(), Sweep::yes);
  CHECK(there(removed) == 0);
  CHECK(there(kept) == kept.size());
}

TEST_CASE("cache::survey: pruning removes the least recently used, whole, until the rest fits") {
  const StoredFiles files;
  for (std::uint8_t i = 0; i < 5; ++i) {
    files.write(digest_with(0x12, i), ".bin", 90, 1000 - 100 * i);
    files.write(digest_with(0x12, i), ".meta", 10, 1000 - 100 * i);
  }
  const auto left = [&] {
    std::vector<int> entries;
    for (int i = 0; i < 5; ++i) {
      const Digest digest = digest_with(0x12, static_cast<std::uint8_t>(i));
      const fs::path stem = files.folder.path() / device_folder / "12";
      const bool program = fs::exists(stem / file_name_of(digest, ".bin"));
      CHECK(program == fs::exists(stem / file_name_of(digest, ".meta")));
      if (program) entries.push_back(i);
    }
    return entries;
  };
  Survey found = survey(files.root.get(), Sweep::no);
  REQUIRE(found.bytes == 500);
  CHECK(prune(files.root.get(), found, 500) == 0);
  CHECK(prune(files.root.get(), found, 301) == 2);
  CHECK(found.bytes == 300);
  CHECK(left() == std::vector<int>{2, 3, 4});
  found = survey(files.root.get(), Sweep::no);
  CHECK(remove_entry(files.root.get(), device_folder, digest_with(0x12, 3)).ok());
  CHECK(remove_entry(files.root.get(), device_folder, digest_with(0x12, 3)).ok());  // it is gone already
  CHECK(remove_entry(files.root.get(), "none", digest_with(0x12, 3)).ok());
  CHECK(left() == std::vector<int>{2, 4});
  CHECK(prune(files.root.get(), found, 100) == 1);  // one was gone: that makes room too
  CHECK(found.bytes == 100);
  CHECK(left() == std::vector<int>{4});
}

TEST_CASE("cache::survey: names of files and folders") {
  const Digest digest = digest_with(0xab, 0xcd);
  CHECK(subfolder_of(digest) == "ab");
  CHECK(file_name_of(digest, ".bin") == "ab" + std::string(60, '0') + "cd.bin");
  for (const char* name : {"00", "ff", "a9", "9a"}) CHECK(is_subfolder_name(name));
  for (const char* name : {"", "0", "000", "g0", "0g", "A0", "0/", "0:", "`0", "/0"})
    CHECK_FALSE(is_subfolder_name(name));
  const std::string hex = digest.hex();
  for (const std::string& name : {hex + ".bin", hex + ".meta"}) CHECK(is_stored_file_name(name));
  for (const std::string& name : {hex, hex + ".tmp", hex.substr(1) + ".bin", "x" + hex + ".bin", hex + ".bin2",
                                  "g" + hex.substr(1) + ".bin", std::string()}) {
    CAPTURE(name);
    CHECK_FALSE(is_stored_file_name(name));
  }
}

TEST_CASE("cache::survey: what cannot be removed is passed over, and takes its room") {
  const ChildEnd end = in_unprivileged_child([]() -> std::string {
    const StoredFiles files;
    const Digest blocked = digest_with(0x12, 1), free = digest_with(0x34, 2);
    const fs::path stays = files.write(blocked, ".bin", 100, 1000), goes = files.write(free, ".bin", 50, 10);
    chmod(stays.parent_path().c_str(), 0500);
    Survey found = survey(files.root.get(), Sweep::no);
    const std::size_t removed = prune(files.root.get(), found, 0);
    const std::string said = remove_entry(files.root.get(), device_folder, blocked).text();
    chmod(stays.parent_path().c_str(), 0700);
    if (removed != 1 || fs::exists(goes)) return "the newer one was not removed";
    if (!fs::exists(stays)) return "it was removed";
    if (found.bytes != 100) return std::to_string(found.bytes) + " bytes are left";
    const std::string expected =
        std::string("io: file ") + device_folder + "/" + blocked.hex() + ".bin: cannot be removed: Permission denied";
    return said == expected ? "" : said;
  });
  CHECK(end.said == "");
}

}  // namespace
}  // namespace kiln::test
