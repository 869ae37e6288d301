// prepare_driver_cache: what a driver is given is this user's alone, and what it maps has blocks.
#include "runtime/driver_environment.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <kiln/driver_cache.hpp>
#include <string>

#include "core/cache/workplace.hpp"
#include "support/in_child.hpp"

namespace kiln {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

struct Place {
  test::CacheTestFolder temporary;
  fs::path driver = temporary.path() / "cache" / "driver";
  fs::path folder = driver / "name";
  fs::path index = folder / "mesa_shader_cache" / "index";
};

// In a child whose files may have so many bytes: the error; empty: there is none.
std::string prepared_with_room(const fs::path& folder, rlim_t bytes) {
  const test::ChildEnd end = test::in_child([&]() -> std::string {
    const rlimit limit{bytes, bytes};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return "no limit can be set";
    return prepare_driver_cache(folder).message;
  });
  CHECK(end.signal == 0);
  return end.said;
}

}  // namespace

TEST_CASE("runtime::driver_cache: what is missing is made for this user alone, with blocks for what Mesa maps",
          "[runtime][driver_cache]") {
  const Place place;
  REQUIRE(prepare_driver_cache(place.folder).ok());
  CHECK(check_private_folder(place.folder).ok());
  struct stat at {};
  REQUIRE(stat(place.index.c_str(), &at) == 0);
  CHECK(at.st_size == 1310728);
  CHECK(at.st_blocks * 512 >= at.st_size);
  CHECK((at.st_mode & 0777) == 0600);

  fs::resize_file(place.index, 0);
  fs::resize_file(place.index, 1310728);  // sparse, as Mesa makes it
  REQUIRE(stat(place.index.c_str(), &at) == 0);
  REQUIRE(at.st_blocks * 512 < at.st_size);
  REQUIRE(prepare_driver_cache(place.folder).ok());
  REQUIRE(stat(place.index.c_str(), &at) == 0);
  CHECK(at.st_blocks * 512 >= at.st_size);
}

TEST_CASE("runtime::driver_cache: a folder that others can change is named, and nothing is made in it",
          "[runtime][driver_cache]") {
  const Place place;
  fs::create_directories(place.folder);
  fs::permissions(place.folder, fs::perms::owner_all);
  const auto refused = [&](const char* why) {
    const Status status = prepare_driver_cache(place.folder);
    INFO(status.text());
    CHECK(status.code == StatusCode::unavailable);
    CHECK_THAT(status.message, Contains(why));
    CHECK_FALSE(fs::exists(place.index));
  };
  SECTION("its mode") {
    fs::permissions(place.folder, fs::perms(0777));
    refused("0777");
    fs::permissions(place.folder, fs::perms(0750));
    refused("0750, expected 0700");
  }
  SECTION("a link") {
    fs::rename(place.folder, place.driver / "elsewhere");
    fs::create_directory_symlink(place.driver / "elsewhere", place.folder);
    refused("link");
  }
  SECTION("the folder above it") {
    fs::permissions(place.driver, fs::perms(0777));
    refused("0777");
    fs::remove(place.folder);
    refused("0777");
    CHECK(fs::is_empty(place.driver));
  }
  SECTION("where a link above it leads") {
    fs::rename(place.driver, place.temporary.path() / "open");
    fs::permissions(place.temporary.path() / "open", fs::perms(0777));
    fs::create_directory_symlink(place.temporary.path() / "open", place.driver);
    refused("0777");
  }
}

TEST_CASE("runtime::driver_cache: a file without enough space is reported and removed", "[runtime][driver_cache]") {
  const Place place;
  REQUIRE(prepare_driver_cache(place.folder).ok());
  REQUIRE(fs::remove(place.index));
  const std::string why = prepared_with_room(place.folder, 1310727);
  CHECK_THAT(why, Contains("file " + place.index.string()) && Contains("cannot be extended to 1310728 bytes"));
  CHECK_FALSE(fs::exists(place.index));

  std::ofstream(place.index, std::ios::binary) << "12345";  // what a driver has written is left to it
  fs::permissions(place.index, fs::perms::owner_read | fs::perms::owner_write);
  CHECK_THAT(prepared_with_room(place.folder, 1310727), Contains("cannot be extended to 1310728 bytes"));
  REQUIRE(fs::exists(place.index));
  CHECK(fs::file_size(place.index) == 5);

  CHECK(prepared_with_room(place.folder, 1310728) == "");
  CHECK(fs::file_size(place.index) == 1310728);
}

TEST_CASE("runtime::driver_cache: folders of processes that have ended are removed", "[runtime][driver_cache]") {
  const Place place;
  REQUIRE(prepare_driver_cache(place.folder).ok());
  const auto made = [&](const std::string& name) {
    const fs::path folder = place.driver / name;
    fs::create_directory(folder);
    fs::permissions(folder, fs::perms::owner_all);
    std::ofstream(folder / "code") << "code";
    return folder;
  };
  const fs::path old = made(std::string(64, 'a') + ".1.0123456789abcdef");
  const fs::path young = made(std::string(64, 'b') + ".1.0123456789abcdef");
  const fs::path other = made("notes");
  for (const fs::path& folder : {old, other}) {
    fs::last_write_time(folder, fs::file_time_type::clock::now() - std::chrono::minutes(10));
  }
  REQUIRE(prepare_driver_cache(place.folder).ok());
  CHECK_FALSE(fs::exists(old));
  CHECK(fs::exists(young / "code"));
  CHECK(fs::exists(other / "code"));
}

TEST_CASE("runtime::driver_cache: a private folder is this user's, with mode 0700", "[runtime][driver_cache]") {
  const test::CacheTestFolder temporary;
  const fs::path at = temporary.path() / "folder";
  CHECK_FALSE(check_private_folder(at).ok());
  std::ofstream(at) << "text";
  CHECK(check_private_folder(at).message == "folder " + at.string() + ": is a link or a file, expected a folder");
  fs::remove(at);
  fs::create_directory(at);
  fs::permissions(at, fs::perms(0500));
  CHECK(check_private_folder(at).message == "folder " + at.string() + ": has mode 0500, expected 0700");
  fs::permissions(at, fs::perms(0700));
  CHECK(check_private_folder(at).text() == "ok");
  if (geteuid() != 0 || chown(at.c_str(), 65534, 65534) != 0) return;
  CHECK(check_private_folder(at).message == "folder " + at.string() + ": belongs to user 65534, expected 0");
}

TEST_CASE("runtime::driver_cache: where nothing can be made it says what and why", "[runtime][driver_cache]") {
  const Status status = prepare_driver_cache(no_driver_cache);
  CHECK_FALSE(status.ok());
  const Status below = prepare_driver_cache("/proc/none/driver");
  CHECK(below.code == StatusCode::io);
  CHECK_THAT(below.message, Contains("/proc/none"));
}

}  // namespace kiln
