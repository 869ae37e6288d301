// prune and clear: what goes, in which order, and that nothing goes which Kiln did not make.
#include "cache/driver_scratch.hpp"
#include "cache_admin/selection.hpp"
#include "core/cache/workplace.hpp"
#include "support/in_child.hpp"

#include <kiln/cache_admin.hpp>
#include <kiln/driver_cache.hpp>

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
  // A folder of a driver, with a file of 100 bytes in it.
  fs::path make_driver_folder(const std::string& name) {
    const fs::path folder = config.directory / "driver" / name;
    fs::create_directories(folder / "mesa_shader_cache" / "ab");
    for (const fs::path& each : {config.directory, folder.parent_path(), folder}) {
      fs::permissions(each, fs::perms::owner_all);
    }
    overwrite(folder / "mesa_shader_cache" / "ab" / "cdef", std::vector<std::byte>(100, std::byte{7}));
    return folder;
  }
};

TEST_CASE("cache::clear: a device folder that is missing or a link clears nothing") {
  Workplace place;
  const UniqueFd root(open(place.temporary.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(root);
  const Cleared missing = clear_device_folder(root.get(), "device-0");
  CHECK(missing.failure.text() == "ok");
  CHECK(missing.programs == 0);
  CHECK(missing.bytes == 0);
  std::filesystem::create_directory_symlink("/usr", place.temporary.path() / "device-1");
  const Cleared link = clear_device_folder(root.get(), "device-1");
  CHECK_THAT(link.failure.message, Catch::StartsWith("folder device-1: "));
  CHECK(link.programs == 0);
  CHECK(link.bytes == 0);
}

TEST_CASE("cache::pruning: what was not used for longer than the age goes, and the folders that this leaves empty") {
  Kept place;
  for (const char* text : {"old", "used since", "new"}) place.build(text);
  place.age("old", hours(50));
  place.age("used since", hours(50));
  for (const auto& meta : place.named(key_for("used since", place.device).digest.hex() + ".meta")) {
    set_age(meta, hours(1));
  }
  const fs::path cut_off =
      place.named(key_for("new", place.device).digest.hex() + ".bin").at(0).parent_path() / ".1-0.tmp";
  overwrite(cut_off, {});
  set_age(cut_off, hours(1));
  const auto pretended = prune_cache(place.config, {hours(48), {}}, Removal::pretend);
  CHECK(pretended->programs == 1);
  CHECK(place.holds("old"));
  CHECK(fs::exists(cut_off));
  const auto pruned = prune_cache(place.config, {hours(48), {}}, Removal::perform);
  REQUIRE(pruned);
  CHECK(pruned->programs == 1);
  CHECK(pruned->bytes == pretended->bytes);
  CHECK(pruned->programs_left == 2);
  CHECK(pruned->failure.ok());
  CHECK_FALSE(fs::exists(cut_off));
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
  std::vector<std::pair<std::uint64_t, std::uint64_t>> told;
  const auto progress = [&](std::uint64_t done, std::uint64_t of) { told.emplace_back(done, of); };
  CHECK(prune_cache(place.config, {{}, pruned->bytes_left}, Removal::perform)->programs == 0);
  const auto one = prune_cache(place.config, {{}, pruned->bytes_left - 1}, Removal::perform, progress);
  REQUIRE(one);
  CHECK(one->programs == 1);
  CHECK(one->bytes + one->bytes_left == pruned->bytes_left);
  REQUIRE(told.size() == pruned->programs_left);
  for (std::size_t i = 0; i < told.size(); ++i)
    CHECK(told[i] == std::pair<std::uint64_t, std::uint64_t>(i + 1, told.size()));
}

TEST_CASE("cache::clearing: everything that Kiln made goes and nothing else; everything means statistics too") {
  Kept place;
  CHECK(clear_cache(place.config, ClearScope::everything)->failure.text() == "ok");  // nothing is there
  place.build("one");
  place.build("two");
  place.make_driver_folder(digits('a'));
  overwrite(place.files(".bin").at(0).parent_path() / ".1-0.tmp", {});
  const fs::path notes = place.config.directory / "a person's notes";
  overwrite(notes, {});
  for (const char* name : {"selector.model", "selector.lock", "selector.log", "selector.log.1"}) {
    overwrite(place.config.directory / name, {});
  }
  fs::create_directory(place.config.directory / "remote");
  for (const char* name : {"0123456789abcdef.state", "0123456789abcdef.totals", "totals.lock"}) {
    overwrite(place.config.directory / "remote" / name, std::vector<std::byte>(7));
  }
  std::uint64_t bytes = 100;  // of the driver's file
  for (const char* suffix : {".bin", ".meta"}) {
    for (const fs::path& file : place.files(suffix)) bytes += fs::file_size(file);
  }
  const auto cleared = clear_cache(place.config, ClearScope::programs);
  REQUIRE(cleared);
  CHECK(cleared->failure.ok());
  CHECK(cleared->programs == 2);
  CHECK(cleared->bytes == bytes);
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(place.config.directory)) left.push_back(entry.path().filename());
  std::ranges::sort(left);
  CHECK(left == std::vector<std::string>{"a person's notes", "cache_stats.json", "cache_stats.lock", "remote",
                                         "selector.lock", "selector.log", "selector.log.1", "selector.model"});
  CHECK(cache_totals(place.config)->processes == 2);
  const auto rest = clear_cache(place.config, ClearScope::everything);
  REQUIRE(rest);
  CHECK(rest->bytes == 21);
  CHECK(fs::exists(notes));
  CHECK(std::distance(fs::directory_iterator(place.config.directory), {}) == 1);
  CHECK(fs::exists(place.config.key_file));
}

TEST_CASE("cache::clearing: folders of drivers go whatever their age and name, but not the one that is in use") {
  Kept place;
  const fs::path old = place.make_driver_folder(digits('a'));  // as older versions named it
  const fs::path ended = place.make_driver_folder(digits('a') + ".1.0123456789abcdef");
  const ChildEnd end = in_child([&]() -> std::string {
    const fs::path used = place.config.directory / "driver" / DriverScratch::new_name(digits('a'));
    if (!prepare_driver_cache(used).ok()) return "no folder";
    setenv("MESA_SHADER_CACHE_DIR", used.c_str(), 1);
    auto scratch = DriverScratch::of_process();
    if (scratch == nullptr) return "not locked";
    const auto cleared = clear_cache(place.config, ClearScope::everything);
    if (!cleared || !cleared->failure.ok()) return "clear failed";
    if (cleared->bytes != 200) return "cleared " + std::to_string(cleared->bytes) + " bytes";
    if (fs::exists(old) || fs::exists(ended)) return "a folder that nobody uses is left";
    if (!fs::exists(used / "mesa_shader_cache" / "index")) return "the folder in use is gone";
    scratch.reset();
    return fs::exists(used) ? "the process left its folder" : "";
  });
  CHECK(end.said == "");
  CHECK(end.signal == 0);
  REQUIRE(clear_cache(place.config, ClearScope::programs));
  CHECK_FALSE(fs::exists(place.config.directory / "driver"));
}

TEST_CASE("cache::clearing: what is in the folder of drivers and is not named by Kiln stays") {
  Kept place;
  const fs::path old = place.make_driver_folder(digits('b'));
  std::vector<fs::path> foreign;
  for (const std::string& name : {std::string("of a person"), digits('b').substr(1), digits('g'), digits('b') + "b",
                                  digits('B'), digits('b') + ".1", digits('b') + ".1.0123"}) {
    foreign.push_back(place.make_driver_folder(name));
  }
  REQUIRE(clear_cache(place.config, ClearScope::everything)->failure.ok());
  CHECK_FALSE(fs::exists(old));
  for (const fs::path& each : foreign) {
    INFO(each);
    CHECK(fs::exists(each / "mesa_shader_cache" / "ab" / "cdef"));
  }
}

TEST_CASE("cache::clearing: a link among a driver's files is removed and not followed") {
  Kept place;
  const fs::path old = place.make_driver_folder(digits('c'));
  const fs::path outside = place.temporary.path() / "outside";
  fs::create_directories(outside);
  overwrite(outside / "file", {});
  fs::create_directory_symlink(outside, old / "mesa_shader_cache" / "link");
  fs::create_directory_symlink(outside, place.config.directory / "driver" / digits('d'));
  REQUIRE(clear_cache(place.config, ClearScope::programs)->failure.ok());
  CHECK_FALSE(fs::exists(old));
  CHECK(fs::exists(outside / "file"));
}

TEST_CASE("cache::clearing: a driver's file that cannot be removed is named") {
  const ChildEnd end = in_unprivileged_child([]() -> std::string {
    Kept place;
    const fs::path inner = place.make_driver_folder(digits('e')) / "mesa_shader_cache" / "ab";
    fs::permissions(inner, fs::perms::owner_read | fs::perms::owner_exec);
    const auto cleared = clear_cache(place.config, ClearScope::programs);
    fs::permissions(inner, fs::perms::owner_all);
    if (!cleared || cleared->bytes != 0) return "it was counted as removed";
    const std::string expected = "folder driver/" + digits('e') + ": file cdef: cannot be removed: Permission denied";
    return cleared->failure.message == expected ? "" : "said '" + cleared->failure.message + "'";
  });
  CHECK(end.said == "");
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

TEST_CASE("cache::clearing: a folder in a file's place is told, and the files beside it go") {
  Kept place;
  place.build("one");
  const fs::path folder = place.files(".bin").at(0).parent_path();
  fs::create_directory(folder / (digits('a') + ".bin"));
  for (const char* name : {".1-0.tmp", ".2-0.tmp", ".3-0.tmp", ".4-0.tmp"}) overwrite(folder / name, {});
  for (const char* name : {".5-0.tmp", ".6-0.tmp"}) fs::create_directory(folder / name);
  const auto cleared = clear_cache(place.config, ClearScope::programs);
  REQUIRE(cleared);
  CHECK(cleared->programs == 1);
  const std::string inside = folder.parent_path().filename().string() + "/" + folder.filename().string();
  CHECK_THAT(cleared->failure.message,
             Catch::StartsWith("file " + inside + "/") && Catch::EndsWith(": cannot be removed: Is a directory"));
  CHECK(std::distance(fs::directory_iterator(folder), {}) == 3);
}

TEST_CASE("cache::clearing: of a driver's notes only those go, and not through a link") {
  Kept place;
  place.build("one");
  const fs::path notes = place.config.directory / "notes", outside = place.temporary.path() / "outside";
  fs::create_directory(notes);
  fs::permissions(notes, fs::perms::owner_all);
  for (const char digit : {'1', '2', '3', '4'}) {
    overwrite(notes / (std::string("driver ") + digit + ".note"), std::vector<std::byte>(10));
    overwrite(notes / (std::string("of a person ") + digit), {});
  }
  auto cleared = clear_cache(place.config, ClearScope::programs);
  REQUIRE(cleared);
  CHECK(cleared->failure.ok());
  CHECK(std::distance(fs::directory_iterator(notes), {}) == 4);
  CHECK(fs::exists(notes / "of a person 1"));
  fs::rename(notes, outside);
  overwrite(outside / "driver.note", {});
  fs::create_directory_symlink(outside, notes);
  cleared = clear_cache(place.config, ClearScope::programs);
  REQUIRE(cleared);
  CHECK(cleared->bytes == 0);
  CHECK(fs::exists(outside / "driver.note"));
  fs::create_directory(place.config.directory / "missed_keys");
  CHECK(clear_cache(place.config, ClearScope::programs)->failure.text() ==
        "io: file missed_keys: cannot be removed: Is a directory");
}

}  // namespace
}  // namespace kiln::test
