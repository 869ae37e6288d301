// What a run does with a cache folder that it cannot or may not write, or that others can.
#include "host/kiln_process.hpp"
#include "host/sample_jobs.hpp"

#include <catch2/catch.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

struct CachePlace {
  TemporaryFolder folder;
  fs::path cache = folder / "cache";
  fs::path runtime = folder / "runtime";  // $XDG_RUNTIME_DIR
  fs::path job = folder.write("layer.toml", wide_layer);

  Finished run(const std::string& device, const ProcessOptions& options = {},
               const std::vector<std::string>& more = {}) const {
    ProcessOptions keyed = options;
    keyed.environment.emplace("KILN_KEY_FILE", folder / "key");
    keyed.environment.emplace("XDG_RUNTIME_DIR", runtime);
    std::vector<std::string> words = {"run", job, "--json", "--device", device, "--cache-dir", cache};
    words.insert(words.end(), more.begin(), more.end());
    return run_kiln(words, keyed);
  }

  CachePlace() { fs::create_directory(runtime), fs::permissions(runtime, fs::perms::owner_all); }
};

// Every path below, with the time of its last change.
std::vector<std::pair<std::string, fs::file_time_type>> all_below(const fs::path& folder) {
  std::vector<std::pair<std::string, fs::file_time_type>> all;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    all.emplace_back(entry.path().string(), entry.last_write_time());
  }
  std::sort(all.begin(), all.end());
  return all;
}

// In front of a command: the folder becomes a file system of its own without a byte to spare. nullopt: not allowed
// here.
std::optional<std::vector<std::string>> with_full_disk_at(const fs::path& folder) {
  const std::vector<std::string> words = {
      "unshare",
      "-m",
      "sh",
      "-c",
      "mount -t tmpfs -o size=1m,mode=700 none \"$0\" && { cat /dev/zero > \"$0/full\" 2> /dev/null; exec \"$@\"; }",
      folder};
  const Finished tried =
      run_process({"sh", "-c", "test -s \"$0/full\" && ! echo more > \"$0/more\"", folder}, {.before = words});
  if (tried.status != 0) return std::nullopt;
  return words;
}

}  // namespace

TEST_CASE("a full disk below the cache ends no process: one warning, and the result") {
  const CachePlace place;
  fs::create_directories(place.cache);
  const auto full = with_full_disk_at(place.cache);
  if (!full) {
    WARN("skipped: no file system may be mounted here");
    return;
  }
  for (const char* device : {"cpu", "opengl:0"}) {
    const Finished finished = place.run(device, {.before = *full});
    INFO(device << finished.err << finished.out);
    REQUIRE(finished.status == 0);
    CHECK(finished.json()["jobs"][0]["device"]["id"] == device);
    CHECK(finished.json()["jobs"][0]["verified"] == true);
    CHECK_THAT(finished.err, Contains("nothing is stored") && Contains("No space left"));
    CHECK(lines_of(finished.err) == 1);
  }
}

TEST_CASE("the driver's private folder is gone after a run, and programs come from disk without it") {
  const CachePlace place;
  for (const bool cold : {true, false}) {
    const Finished finished = place.run("opengl:0", {}, {"--set", "generator.serve_while_building=false"});
    INFO(finished.err);
    REQUIRE(finished.status == 0);
    CHECK(finished.err == "");
    CHECK(finished.json()["cache"]["driver_cache"] == "adopted");
    CHECK((finished.json()["cache"]["builds"] > 0) == cold);
    CHECK(fs::is_empty(place.runtime / "kiln" / "driver"));
    CHECK_FALSE(fs::exists(place.cache / "driver"));
  }
}

TEST_CASE("a driver's folder that others can write is not used: one warning, and it stays as it is") {
  const CachePlace place;
  REQUIRE(place.run("opengl:0").status == 0);
  const fs::path theirs = place.runtime / "kiln" / "driver";
  const fs::path aside = place.folder / "aside";
  SECTION("by its mode") { fs::permissions(theirs, fs::perms(0777)); }
  SECTION("by a link to a folder that others can write") {
    fs::rename(theirs, aside);
    fs::permissions(aside, fs::perms(0777));
    fs::create_directory_symlink(aside, theirs);
  }
  SECTION("by the folder above it") { fs::permissions(theirs.parent_path(), fs::perms(0777)); }
  const auto before = all_below(theirs);
  const Finished finished = place.run("opengl:0");
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  CHECK(finished.json()["jobs"][0]["verified"] == true);
  CHECK(finished.json()["cache"]["driver_cache"] == "not adopted");
  CHECK(finished.json()["cache"]["builds"] == 0);  // programs are Kiln's, and authenticated
  CHECK_THAT(finished.err, Contains("the driver's cache is disabled") && Contains("0777"));
  CHECK(lines_of(finished.err) == 1);
  CHECK(all_below(theirs) == before);
}

TEST_CASE("a cache folder that others can write is not used: one warning, and nothing is made in it") {
  const CachePlace place;
  fs::create_directories(place.cache);
  fs::permissions(place.cache, fs::perms(0777));
  for (const char* read_only : {"false", "true"}) {
    const Finished finished = place.run("opengl:0", {}, {"--set", std::string("cache.read_only=") + read_only});
    INFO(read_only << finished.err << finished.out);
    REQUIRE(finished.status == 0);
    CHECK(finished.json()["jobs"][0]["verified"] == true);
    CHECK(finished.json()["cache"]["driver_cache"] == "adopted");  // its private folder is not below the cache's
    CHECK_THAT(finished.err, Contains(place.cache.string()) && Contains("0777"));
    CHECK(lines_of(finished.err) == 1);
    CHECK(fs::is_empty(place.cache));
  }
}

TEST_CASE("read_only: programs are found, and nothing at all is written") {
  const CachePlace place;
  const std::vector<std::string> read_only = {"--set", "cache.read_only=true", "--set", "selector.log=true"};
  const Finished first = place.run("opengl:0", {}, read_only);
  INFO(first.err);
  CHECK(first.status == 0);
  CHECK_FALSE(fs::exists(place.cache));
  REQUIRE(place.run("opengl:0").status == 0);
  const auto before = all_below(place.cache);
  const Finished finished = place.run("opengl:0", {}, read_only);
  INFO(finished.err << finished.out);
  REQUIRE(finished.status == 0);
  CHECK(finished.err == "");
  CHECK(finished.json()["cache"]["builds"] == 0);
  CHECK(finished.json()["cache"]["driver_cache"] == "adopted");  // its private folder is not below the cache's
  CHECK(all_below(place.cache) == before);
}

TEST_CASE("verbs that open no device make no folder for one") {
  const CachePlace place;
  for (const char* verb : {"check", "show"}) {
    CHECK(run_kiln({"config", verb, place.job, "--cache-dir", place.cache},
                   {.environment = {{"XDG_RUNTIME_DIR", place.runtime}}})
              .status == 0);
  }
  CHECK(
      run_kiln({"plugins", "--cache-dir", place.cache}, {.environment = {{"XDG_RUNTIME_DIR", place.runtime}}}).status ==
      0);
  CHECK_FALSE(fs::exists(place.cache / "driver"));
  CHECK(fs::is_empty(place.runtime));
}
