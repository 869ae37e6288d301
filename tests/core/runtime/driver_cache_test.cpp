// prepare_driver_cache: what a driver is given is this user's alone, and what it maps has blocks.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <kiln/driver_cache.hpp>

#include "core/cache/workplace.hpp"

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

TEST_CASE("runtime::driver_cache: where nothing can be made it says what and why", "[runtime][driver_cache]") {
  const Status status = prepare_driver_cache(no_driver_cache);
  CHECK_FALSE(status.ok());
  const Status below = prepare_driver_cache("/proc/none/driver");
  CHECK(below.code == StatusCode::io);
  CHECK_THAT(below.message, Contains("/proc/none"));
}

}  // namespace kiln
