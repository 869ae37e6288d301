// prune and clear: what goes, in which order, and that nothing goes which Kiln did not make.
#include "cache/driver_cache/driver_folders.hpp"
#include "core/cache/in_child.hpp"
#include "core/cache/workplace.hpp"

#include <kiln/cache_admin.hpp>

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

namespace kiln::test {
namespace {

using std::chrono::hours;
namespace fs = std::filesystem;

void set_age(const fs::path& path, std::chrono::seconds age) {
  // Reading counts as use of a driver's cache, so both times are set.
  const auto then = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now() - age);
  const timespec times[] = {{then, 0}, {then, 0}};
  if (utimensat(AT_FDCWD, path.c_str(), times, 0) != 0)
    throw std::runtime_error("cannot set the age of " + path.string());
}

std::string digits(char digit) { return std::string(64, digit); }

struct Kept : Workplace {
  SyntheticDevice device;

  void build(const std::string& text) {
    if (!acquire(*open(), text, device)) throw std::runtime_error("was not built");
  }
  void age(const std::string& text, std::chrono::seconds age) {
    for (const char* extension : {".bin", ".meta"}) {
      for (const auto& path : named(key_for(text, device).digest.hex() + extension)) set_age(path, age);
    }
  }
  bool holds(const std::string& text) const { return !named(key_for(text, device).digest.hex() + ".bin").empty(); }
  fs::path driver_folder(char digit) const { return config.directory / "driver" / digits(digit); }
  // As Mesa leaves one, with a note of the devices that it served.
  void make_driver_cache(char digit, std::size_t bytes, std::chrono::seconds age, const std::string& served) {
    const fs::path folder = driver_folder(digit);
    fs::create_directories(folder / "mesa_shader_cache" / "ab");
    fs::create_directories(folder / "devices");
    fs::permissions(config.directory / "driver", fs::perms::owner_all);
    fs::permissions(folder, fs::perms::owner_all);
    const std::vector<std::byte> noise(bytes, std::byte{7});
    overwrite(folder / "mesa_shader_cache" / "ab" / "cdef", noise);
    if (!served.empty()) overwrite(folder / "devices" / served, {});
    set_age(folder / "mesa_shader_cache" / "ab" / "cdef", age);
    set_age(folder, age);
  }
  std::string device_folder() const { return files(".bin").at(0).parent_path().parent_path().filename(); }
};

TEST_CASE("cache::pruning: what was not used for longer than the age goes, and the folders that this leaves empty") {
  Kept place;
  for (const char* text : {"old", "used since", "new"}) place.build(text);
  place.age("old", hours(50));
  place.age("used since", hours(50));
  for (const auto& meta : place.named(key_for("used since", place.device).digest.hex() + ".meta")) {
    set_age(meta, hours(1));
  }
  const auto pretended = prune_cache(place.config, {hours(48), {}}, Removal::pretend);
  CHECK(pretended->programs == 1);
  CHECK(place.holds("old"));
  const auto pruned = prune_cache(place.config, {hours(48), {}}, Removal::perform);
  REQUIRE(pruned);
  CHECK(pruned->programs == 1);
  CHECK(pruned->bytes == pretended->bytes);
  CHECK(pruned->programs_left == 2);
  CHECK(pruned->failure.ok());
  CHECK_FALSE(place.holds("old"));
  CHECK(place.holds("used since"));
  CHECK(place.files(".meta").size() == 2);
  CHECK(prune_cache(place.config, {hours(0), {}}, Removal::perform)->programs == 2);
  CHECK(place.named("manifest.json").empty());
  CHECK(cache_inventory(place.config, Detail::figures)->devices.empty());
  CHECK(fs::exists(place.config.directory));
}

TEST_CASE("cache::pruning: over the size the least recently used go, until the rest fits") {
  Kept place;
  place.config.compression = "none";
  for (int i = 0; i < 6; ++i) {
    place.build(std::to_string(i));
    place.age(std::to_string(i), hours(10 - i));
  }
  const auto before = cache_inventory(place.config, Detail::figures);
  const std::uint64_t half = before->bytes_stored / 2;
  const auto pruned = prune_cache(place.config, {{}, half}, Removal::perform);
  CHECK(pruned->bytes_left <= half);
  CHECK(pruned->bytes + pruned->bytes_left == before->bytes_stored);
  CHECK(cache_inventory(place.config, Detail::figures)->bytes_stored == pruned->bytes_left);
  CHECK_FALSE(place.holds("0"));
  CHECK_FALSE(place.holds("2"));
  CHECK(place.holds("5"));
  CHECK(place.holds("4"));
  CHECK(prune_cache(place.config, {{}, before->bytes_stored}, Removal::perform)->programs == 0);
}

TEST_CASE("cache::pruning: the cache of a driver that no device folder has any more goes first, whole") {
  Kept place;
  place.build("one");
  place.age("one", hours(900));
  const std::string gone = "gone-0123456789abcdef-0123456789abcdef";
  place.make_driver_cache('a', 10'000, hours(30), gone);
  place.make_driver_cache('b', 10'000, hours(800), place.device_folder());
  place.make_driver_cache('c', 10'000, hours(1), gone);  // served it an hour ago: it may be about to be noted again
  place.make_driver_cache('d', 10'000, hours(800), "");  // nobody knows whose it is
  const auto stored = cache_inventory(place.config, Detail::figures);
  REQUIRE(stored->driver_caches.size() == 4);
  CHECK(stored->driver_cache_bytes == 40'000);
  CHECK(stored->driver_caches[0].orphaned);
  CHECK(stored->driver_caches[0].files == 1);
  CHECK_FALSE(stored->driver_caches[1].orphaned);
  CHECK(stored->driver_caches[1].devices == std::vector{place.device_folder()});
  CHECK_FALSE(stored->driver_caches[3].orphaned);

  const std::uint64_t all = stored->driver_cache_bytes + stored->bytes_stored;
  const auto pruned = prune_cache(place.config, {{}, all - 1}, Removal::perform);
  CHECK(pruned->driver_caches == 1);
  CHECK(pruned->programs == 0);
  CHECK(pruned->bytes == 10'000);
  CHECK_FALSE(fs::exists(place.driver_folder('a')));
  CHECK(fs::exists(place.driver_folder('b')));
  const auto more = prune_cache(place.config, {{}, all - 10'001}, Removal::perform);
  CHECK(more->programs == 1);  // the next in order of use
  CHECK(prune_cache(place.config, {hours(48), {}}, Removal::perform)->driver_caches == 2);
  CHECK(fs::exists(place.driver_folder('c')));
}

TEST_CASE("cache::driver_folders: a process notes which device its driver's cache served, and that it was used") {
  Kept place;
  place.device.facts().driver_cache = "adopted";
  place.make_driver_cache('a', 100, hours(800), "");
  fs::permissions(place.config.directory, fs::perms::owner_all);
  const std::string told = place.driver_folder('a').string();
  const ChildEnd end = in_child([&]() -> std::string {
    setenv("MESA_SHADER_CACHE_DIR", told.c_str(), 1);
    place.build("one");
    return {};
  });
  REQUIRE(end.said == "");
  const auto stored = cache_inventory(place.config, Detail::figures);
  REQUIRE(stored->driver_caches.size() == 1);
  CHECK(stored->driver_caches[0].devices == std::vector{place.device_folder()});
  CHECK(stored->driver_caches[0].files == 1);
  CHECK(stored->driver_caches[0].bytes == 100);
  CHECK(prune_cache(place.config, {hours(48), {}}, Removal::perform)->driver_caches == 0);
}

TEST_CASE("cache::clearing: everything that Kiln made goes and nothing else; everything means statistics too") {
  Kept place;
  place.build("one");
  place.build("two");
  place.make_driver_cache('a', 100, hours(1), place.device_folder());
  overwrite(place.files(".bin").at(0).parent_path() / ".1-0.tmp", {});
  const fs::path notes = place.config.directory / "a person's notes";
  overwrite(notes, {});
  for (const char* name : {"selector.model", "selector.lock", "selector.log", "selector.log.1"}) {
    overwrite(place.config.directory / name, {});
  }
  const auto cleared = clear_cache(place.config, ClearScope::programs);
  REQUIRE(cleared);
  CHECK(cleared->failure.ok());
  CHECK(cleared->programs == 2);
  CHECK(cleared->driver_caches == 1);
  CHECK(cleared->bytes > 100);
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(place.config.directory)) left.push_back(entry.path().filename());
  std::ranges::sort(left);
  CHECK(left == std::vector<std::string>{"a person's notes", "cache_stats.json", "cache_stats.lock", "selector.lock",
                                         "selector.log", "selector.log.1", "selector.model"});
  CHECK(cache_totals(place.config)->processes == 2);
  REQUIRE(clear_cache(place.config, ClearScope::everything));
  CHECK(fs::exists(notes));
  CHECK(std::distance(fs::directory_iterator(place.config.directory), {}) == 1);
  CHECK(fs::exists(place.config.key_file));
}

TEST_CASE("cache::clearing: a stranger's file keeps its folder, and a link is not followed") {
  Kept place;
  place.build("one");
  const fs::path folder = place.files(".bin").at(0).parent_path();
  overwrite(folder / "notes", {});
  const fs::path outside = place.temporary.path() / "outside";
  fs::create_directories(outside / "ab");
  overwrite(outside / "ab" / (digits('a') + ".bin"), {});
  fs::create_directory_symlink(outside, place.config.directory / "x-0123456789abcdef-0123456789abcdef");
  fs::create_directory_symlink(outside, place.config.directory / "driver");
  CHECK(clear_cache(place.config, ClearScope::everything)->programs == 1);
  CHECK(fs::exists(folder / "notes"));
  CHECK(fs::exists(outside / "ab" / (digits('a') + ".bin")));
}

TEST_CASE("cache::clearing: a process that has the cache open goes on, and stores again") {
  Kept place;
  const auto cache = place.open();
  REQUIRE(acquire(*cache, "one", place.device));
  REQUIRE(clear_cache(place.config, ClearScope::everything));
  CHECK(place.files(".bin").empty());
  CHECK(acquire(*cache, "one", place.device)->tier == Tier::memory);
  CHECK(acquire(*cache, "two", place.device)->tier == Tier::built);
  CHECK(place.log.warnings().empty());
  CHECK(place.files(".bin").size() == 1);
  CHECK(place.named("manifest.json").size() == 1);
  CHECK(acquire(*place.open(), "two", place.device)->tier == Tier::disk);
}

TEST_CASE("cache::pruning: what cannot be removed is told, and counted as left") {
  const ChildEnd end = in_unprivileged_child([]() -> std::string {
    Kept place;
    place.build("one");
    const fs::path folder = place.files(".bin").at(0).parent_path();
    fs::permissions(folder, fs::perms::owner_read | fs::perms::owner_exec);
    const auto pruned = prune_cache(place.config, {{}, 0}, Removal::perform);
    const auto cleared = clear_cache(place.config, ClearScope::programs);
    fs::permissions(folder, fs::perms::owner_all);
    if (!pruned || pruned->programs != 0 || pruned->programs_left != 1) return "it was counted as removed";
    if (pruned->failure.message.find("cannot be removed: Permission denied") == std::string::npos) {
      return "said '" + pruned->failure.message + "'";
    }
    if (!cleared || cleared->failure.ok() || cleared->programs != 0) return "clear did not tell";
    return place.holds("one") ? "" : "it is gone";
  });
  CHECK(end.said == "");
}

}  // namespace
}  // namespace kiln::test
