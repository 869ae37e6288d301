// A disk that is read-only, full, missing, somebody else's or not what it seems: the program is served all the same, it
// is said once, and nothing half-written is left.
#include "base/os/private_folder.hpp"
#include "cache/manifest.hpp"
#include "core/cache/workplace.hpp"
#include "support/in_child.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

namespace kiln::test {
namespace {

constexpr std::string_view skip = "skip: ";

void check(const ChildEnd& end) {
  if (end.said.starts_with(skip)) {
    WARN("skipped: " << end.said.substr(skip.size()));
    return;
  }
  CHECK(end.said == "");
  CHECK(end.signal == 0);
}

// What is wrong with a cache that must serve from memory, and say so once.
std::string served_from_memory(Workplace& place, const std::string& expected_reason) {
  SyntheticDevice device;
  const auto cache = place.open();
  for (const char* text : {"one", "two"}) {
    const auto built = acquire(*cache, text, device);
    if (!built || built->tier != Tier::built || text_of(*built) != text) return std::string(text) + " was not built";
    if (acquire(*cache, text, device)->tier != Tier::memory) return std::string(text) + " was not kept in memory";
  }
  const auto warnings = place.log.warnings();
  if (warnings.size() != 1) return "said " + std::to_string(warnings.size()) + " times, expected once";
  if (!warnings.front().starts_with("programs are kept in memory only") ||
      warnings.front().find(expected_reason) == std::string::npos) {
    return "said '" + warnings.front() + "', expected '" + expected_reason + "'";
  }
  return {};
}

std::string leftovers(const Workplace& place) {
  for (const char* extension : {".bin", ".tmp"}) {
    if (!place.files(extension).empty()) return "there is " + place.files(extension).front().string();
  }
  return {};
}

TEST_CASE("cache::failing_disk: a folder that this user cannot write") {
  check(in_unprivileged_child([]() -> std::string {
    Workplace place;
    SyntheticDevice device;
    if (!acquire(*place.open(), "stored before", device)) return "could not be stored at first";
    const auto folder = place.files(".bin").at(0).parent_path();
    for (const auto& closed : {folder, folder.parent_path(), place.config.directory}) chmod(closed.c_str(), 0500);
    if (open((folder / "plain").c_str(), O_WRONLY | O_CREAT, 0600) >= 0) return "a plain write did not fail";
    if (acquire(*place.open(), "stored before", device)->tier != Tier::disk) return "it was not read any more";
    std::string wrong = served_from_memory(place, "Permission denied");
    for (const auto& closed : {place.config.directory, folder.parent_path(), folder}) chmod(closed.c_str(), 0700);
    if (place.files(".bin").size() != 1) return "something was written";
    return wrong;
  }));
}

TEST_CASE("cache::failing_disk: a folder that cannot be made") {
  check(in_unprivileged_child([]() -> std::string {
    Workplace place;
    chmod(place.temporary.path().c_str(), 0500);
    if (mkdir(place.config.directory.c_str(), 0700) == 0) return "a plain mkdir did not fail";
    return served_from_memory(place, "cannot be created: Permission denied");
  }));
}

TEST_CASE("cache::failing_disk: root's folder, which this user cannot write, and another user's") {
  check(in_unprivileged_child([]() -> std::string {
    Workplace place;
    place.config.directory = "/usr";
    return served_from_memory(place, "cannot be created: Permission denied");
  }));
  if (geteuid() != 0) {
    WARN("skipped: giving a folder away takes root");
    return;
  }
  Workplace place;
  std::filesystem::create_directory(place.config.directory);
  REQUIRE(chown(place.config.directory.c_str(), 12345, 12345) == 0);
  CHECK(served_from_memory(place, "belongs to user 12345, expected 0") == "");
}

TEST_CASE("cache::failing_disk: a folder of this user's that others may write") {
  Workplace place;
  std::filesystem::create_directory(place.config.directory);
  REQUIRE(chmod(place.config.directory.c_str(), 0777) == 0);
  CHECK(served_from_memory(place, "has mode 0777, expected write permission only for the owner") == "");
  CHECK(std::filesystem::is_empty(place.config.directory));
}

TEST_CASE("cache::failing_disk: a symbolic link of this user's is followed, with or without a slash behind it") {
  Workplace place;
  const auto real = place.temporary.path() / "real";
  std::filesystem::create_directory(real);
  REQUIRE(chmod(real.c_str(), 0700) == 0);
  std::filesystem::create_symlink(real, place.config.directory);
  SECTION("link") {}
  SECTION("link and slash") { place.config.directory += "/"; }
  SyntheticDevice device;
  CHECK(acquire(*place.open(), "one", device)->tier == Tier::built);
  CHECK(acquire(*place.open(), "one", device)->tier == Tier::disk);
  CHECK(place.log.warnings().empty());
  CHECK_FALSE(std::filesystem::is_empty(real));
}

TEST_CASE("cache::failing_disk: a symbolic link in place of a device's folder is not followed") {
  Workplace place;
  const auto real = place.temporary.path() / "real";
  std::filesystem::create_directory(real);
  SyntheticDevice device;
  std::filesystem::create_directory(place.config.directory);
  chmod(place.config.directory.c_str(), 0700);
  std::filesystem::create_symlink(real, place.config.directory / device_folder_name(device.info()));
  CHECK(served_from_memory(place, "is a symbolic link, expected a folder") == "");
  CHECK(std::filesystem::is_empty(real));
}

TEST_CASE("cache::failing_disk: the path that links lead to, and what is refused on it") {
  const CacheTestFolder temporary;
  const std::filesystem::path at = temporary.path();
  std::filesystem::create_directories(at / "a" / "b");
  std::filesystem::create_directory_symlink("a", at / "link");
  std::filesystem::create_directory_symlink("../link/b", at / "a" / "up");
  std::filesystem::create_directory_symlink("/", at / "root");
  const auto leads_to = [](const std::filesystem::path& path) {
    const auto followed = followed_path(path);
    return followed ? followed->string() : followed.error().message;
  };
  CHECK(leads_to(at / "a") == (at / "a").string());
  CHECK(leads_to(at / "link" / "b") == (at / "a" / "b").string());
  CHECK(leads_to(at / "link" / "up") == (at / "a" / "b").string());
  CHECK(leads_to(at / "link" / ".." / "a" / ".") == (at / "a").string());
  CHECK(leads_to(at / "link" / "no" / "such") == (at / "a" / "no" / "such").string());
  CHECK(leads_to(at / "root" / "usr") == "/usr");
  CHECK(leads_to("/") == "/");
  REQUIRE(chmod((at / "a").c_str(), 0777) == 0);
  CHECK(leads_to(at / "link" / "b") ==
        "folder " + (at / "a").string() + ": has mode 0777, expected write permission only for the owner");
  REQUIRE(chmod((at / "a").c_str(), 01777) == 0);  // others may add names, and exchange none
  CHECK(leads_to(at / "link" / "b") == (at / "a" / "b").string());
}

TEST_CASE("cache::failing_disk: a file where the folder should be") {
  Workplace place;
  overwrite(place.config.directory, {});
  CHECK(served_from_memory(place, "is not a folder") == "");
}

TEST_CASE("cache::failing_disk: a key file that others can read, and none at all") {
  Workplace place;
  SECTION("readable by others") {
    std::filesystem::create_directory(place.config.key_file.parent_path());
    overwrite(place.config.key_file, std::vector<std::byte>(32));
    REQUIRE(chmod(place.config.key_file.c_str(), 0644) == 0);
    CHECK(served_from_memory(place, "has mode 0644, expected 0600") == "");
  }
  SECTION("not configured") {
    place.config.key_file.clear();
    CHECK(served_from_memory(place, "no key file is configured. Set HOME") == "");
  }
  CHECK(leftovers(place) == "");
}

TEST_CASE("cache::failing_disk: what is only read needs its folder's key, and says once where there is none") {
  Workplace place;
  SyntheticDevice device;
  place.config.read_only = true;
  CHECK(acquire(*place.open(), "one", device)->tier == Tier::built);
  CHECK(place.log.warnings().empty());  // there is no folder yet
  place.config.read_only = false;
  CHECK(acquire(*place.open(), "one", device)->tier == Tier::built);
  place.config.read_only = true;
  CHECK(acquire(*place.open(), "one", device)->tier == Tier::disk);
  SECTION("missing") { std::filesystem::remove(place.config.key_file); }
  SECTION("all zero") { overwrite(place.config.key_file, std::vector<std::byte>(32)); }
  SECTION("readable by others") { REQUIRE(chmod(place.config.key_file.c_str(), 0644) == 0); }
  for (int process = 0; process < 2; ++process) CHECK(acquire(*place.open(), "one", device)->tier == Tier::built);
  const auto warnings = place.log.warnings();
  REQUIRE(warnings.size() == 2);  // of one process each
  CHECK(warnings[0].starts_with("no program is read from disk: key file " + place.config.key_file.string()));
}

TEST_CASE("cache::failing_disk: persist() says why it could not, and can once there is room") {
  check(in_unprivileged_child([]() -> std::string {
    Workplace place;
    place.config.auto_save = false;
    SyntheticDevice device;
    const auto cache = place.open();
    if (!acquire(*cache, "one", device)) return "was not built";
    chmod(place.config.directory.c_str(), 0500);
    const auto refused = cache->persist();
    chmod(place.config.directory.c_str(), 0700);
    if (refused || refused.error().code != StatusCode::io) return "persist() did not answer io";
    const auto written = cache->persist();
    if (!written || *written != 1) return "what was held back was lost";
    return {};
  }));
}

// A disk of 64 KiB in a mount namespace of the child's own, filled to the last byte.
TEST_CASE("cache::failing_disk: a full disk, and room again") {
  Workplace place;
  std::filesystem::create_directory(place.config.directory);
  check(in_child([&]() -> std::string {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", place.config.directory.c_str(), "tmpfs", 0, "size=64k,mode=0700") != 0) {
      return "skip: this user may not mount a small filesystem";
    }
    SyntheticDevice device;
    if (!acquire(*place.open(), "stored before", device)) return "could not be stored at first";
    const auto filler = place.config.directory / "filler";
    {
      std::ofstream file(filler);
      while (file.put('x').flush()) continue;
    }
    if (std::ofstream(place.config.directory / "plain").put('x').flush()) return "a plain write did not fail";
    std::filesystem::remove(place.config.directory / "plain");
    if (std::string wrong = served_from_memory(place, "No space left on device"); !wrong.empty()) return wrong;
    if (place.files(".bin").size() != 1 || !place.files(".tmp").empty()) return "something half-written is left";
    if (acquire(*place.open(), "stored before", device)->tier != Tier::disk) return "what was stored cannot be read";
    std::filesystem::remove(filler);
    if (acquire(*place.open(), "one", device)->tier != Tier::built) return "'one' was stored on a full disk";
    if (acquire(*place.open(), "one", device)->tier != Tier::disk) return "'one' was not stored when there was room";
    return {};
  }));
}

TEST_CASE("cache::failing_disk: a limit on the size of files, which fails in the middle of a write") {
  Workplace place;
  check(in_child([&]() -> std::string {
    std::signal(SIGXFSZ, SIG_IGN);
    const auto limit = [](rlim_t bytes) {
      rlimit limits{};
      getrlimit(RLIMIT_FSIZE, &limits);
      limits.rlim_cur = bytes;
      return setrlimit(RLIMIT_FSIZE, &limits) == 0;
    };
    SyntheticDevice device;
    if (!acquire(*place.open(), "stored before", device)) return "could not be stored at first";
    if (!limit(100)) return "no limit could be set";
    std::string wrong = served_from_memory(place, "File too large");
    limit(RLIM_INFINITY);
    if (place.files(".bin").size() != 1 || !place.files(".tmp").empty()) return "something half-written is left";
    return wrong;
  }));
}

}  // namespace
}  // namespace kiln::test
