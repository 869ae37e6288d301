// Entries that were altered, misplaced, signed by another, or refused by the driver: each a counted miss, rebuilt, and
// of no consequence for the others.
#include "base/digest.hpp"
#include "core/cache/workplace.hpp"
#include "support/test_length.hpp"

#include <catch2/catch.hpp>

#include <sys/stat.h>
#include <unistd.h>

namespace kiln::test {
namespace {

// A cache that keeps nothing in memory, holding the program "one", whose file is `file`.
struct Stored : Workplace {
  SyntheticDevice device;
  std::unique_ptr<TieredCache> cache;
  std::filesystem::path file;
  std::vector<std::byte> good;

  Stored() {
    config.max_programs = 0;
    config.compression = "none";
    REQUIRE(acquire(*open(), "one", device));
    file = files(".bin").at(0);
    good = contents(file);
    cache = open();
  }

  // One acquisition that must be a rebuild, after which the entry is whole again.
  bool rebuilds() {
    const int before = device.builds;
    const auto got = acquire(*cache, "one", device);
    return got && got->tier == Tier::built && text_of(*got) == "one" && device.builds == before + 1 &&
           contents(file).size() == good.size() && acquire(*cache, "one", device)->tier == Tier::disk &&
           device.false_bytes == 0;
  }
};

TEST_CASE("cache::damaged_entry: each one-bit flip and each truncation of a stored entry is refused and counted") {
  Stored s;
  const auto key = key_for("one", s.device);
  CacheCounters counters;
  DiskTier tier({}, s.config, counters);
  std::uint64_t flips = 0;
  for (std::size_t at = 0; at < s.good.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit, ++flips) {
      auto bytes = s.good;
      bytes[at] ^= static_cast<std::byte>(1u << bit);
      overwrite(s.file, bytes);
      if (tier.find(key, s.device).stored) FAIL("byte " << at << ", bit " << bit);
    }
  }
  RejectedCounts rejected = counters.rejected();
  CHECK(rejected.tampered == 8 * sizeof(Digest));
  CHECK(rejected.corrupt == flips - rejected.tampered);
  for (std::size_t size = 0; size < s.good.size(); ++size) {
    overwrite(s.file, std::span(s.good).first(size));
    if (tier.find(key, s.device).stored) FAIL(size << " bytes");
  }
  rejected = counters.rejected();
  CHECK(rejected.corrupt == flips - rejected.tampered + s.good.size());
  CHECK(rejected.foreign + rejected.refused + rejected.driver_changed + rejected.quarantined == 0);
  overwrite(s.file, s.good);
  CHECK(tier.find(key, s.device).stored);
}

TEST_CASE("cache::damaged_entry: a one-bit flip of a stored entry is refused, counted and rebuilt") {
  Stored s;
  std::uint64_t flips = 0;
  // In the short form one bit of each byte.
  for (std::size_t at = 0; at < s.good.size(); ++at) {
    for (std::size_t bit = is_long() ? 0 : at % 8; bit < 8; bit += is_long() ? 1 : 8, ++flips) {
      auto bytes = s.good;
      bytes[at] ^= static_cast<std::byte>(1u << bit);
      overwrite(s.file, bytes);
      if (!s.rebuilds()) FAIL("byte " << at << ", bit " << bit);
    }
  }
  const RejectedCounts rejected = s.cache->stats().rejected;
  CHECK(rejected.tampered == (is_long() ? 8 : 1) * sizeof(Digest));
  CHECK(rejected.corrupt == flips - rejected.tampered);
  CHECK(rejected.foreign + rejected.refused + rejected.driver_changed + rejected.quarantined == 0);
}

TEST_CASE("cache::damaged_entry: each truncation of a stored entry is corrupt and rebuilt") {
  Stored s;
  for (std::size_t size = 0; size < s.good.size(); ++size) {
    overwrite(s.file, std::span(s.good).first(size));
    if (!s.rebuilds()) FAIL(size << " bytes");
  }
  CHECK(s.cache->stats().rejected.corrupt == s.good.size());
}

TEST_CASE("cache::damaged_entry: altered with its checksum repaired: tampered, and never shown to the driver") {
  Stored s;
  for (std::size_t at = entry_header_bytes; at < s.good.size() - entry_trailer_bytes; at += 7) {
    auto bytes = s.good;
    bytes[at] ^= std::byte{0x20};
    const Checksum sum = xxh3_128(std::span(bytes).first(bytes.size() - entry_trailer_bytes));
    std::memcpy(bytes.data() + bytes.size() - entry_trailer_bytes, sum.data(), sum.size());
    overwrite(s.file, bytes);
    const auto tampered = s.cache->stats().rejected.tampered;
    if (!s.rebuilds() || s.cache->stats().rejected.tampered != tampered + 1) FAIL("byte " << at);
  }
  CHECK(s.device.false_bytes == 0);
}

TEST_CASE("cache::damaged_entry: signed with another key: foreign, and replaced by one of ours") {
  Stored s;
  s.config.key_file = s.temporary.path() / "state" / "another key";
  s.cache = s.open();
  CHECK(s.rebuilds());
  CHECK(s.cache->stats().rejected.foreign == 1);
}

TEST_CASE("cache::damaged_entry: a good entry under another's name is not that other's program") {
  Stored s;
  REQUIRE(acquire(*s.cache, "two", s.device));
  for (const auto& path : s.files(".bin")) {
    if (path != s.file) std::filesystem::copy_file(path, s.file, std::filesystem::copy_options::overwrite_existing);
  }
  CHECK(s.rebuilds());
  CHECK(s.cache->stats().rejected.tampered == 1);
}

TEST_CASE("cache::damaged_entry: what the driver refuses is counted, removed and built; other failures cost no entry") {
  Stored s;
  for (const StatusCode code : {StatusCode::corrupt, StatusCode::unsupported}) {
    s.device.load_answers = code;
    const auto got = acquire(*s.cache, "one", s.device);
    REQUIRE(got);
    CHECK(got->tier == Tier::built);
  }
  CHECK(s.cache->stats().rejected.refused == 2);
  s.device.load_answers = StatusCode::unavailable;
  CHECK(acquire(*s.cache, "one", s.device)->tier == Tier::built);
  CHECK(s.cache->stats().rejected.refused == 2);
  CHECK(s.files(".bin").size() == 1);
  s.device.load_answers = StatusCode::corrupt;
  s.device.fail_builds = true;
  CHECK_FALSE(acquire(*s.cache, "one", s.device));
  CHECK(s.files(".bin").empty());
}

TEST_CASE("cache::damaged_entry: one bad entry costs the others nothing") {
  Stored s;
  for (int i = 0; i < 50; ++i) REQUIRE(acquire(*s.cache, "other " + std::to_string(i), s.device));
  const int builds = s.device.builds;
  overwrite(s.file, std::span(s.good).first(10));
  for (int i = 0; i < 50; ++i) CHECK(acquire(*s.cache, "other " + std::to_string(i), s.device)->tier == Tier::disk);
  CHECK(s.device.builds == builds);
  CHECK(s.rebuilds());
}

TEST_CASE("cache::damaged_entry: a link, a pipe or a folder in an entry's place is not followed") {
  Stored s;
  const auto elsewhere = s.temporary.path() / "elsewhere";
  SECTION("a link to a good entry") {
    std::filesystem::rename(s.file, elsewhere);
    std::filesystem::create_symlink(elsewhere, s.file);
    CHECK(s.rebuilds());
    CHECK(contents(elsewhere) == s.good);  // what it pointed at is untouched
    CHECK_FALSE(std::filesystem::is_symlink(s.file));
    CHECK(s.cache->stats().rejected.tampered == 1);
  }
  SECTION("a pipe, which must not be waited for") {
    std::filesystem::remove(s.file);
    REQUIRE(mkfifo(s.file.c_str(), 0600) == 0);
    CHECK(s.rebuilds());
    CHECK(s.cache->stats().rejected.tampered == 1);
  }
  SECTION("a folder, which cannot be replaced") {
    std::filesystem::remove(s.file);
    std::filesystem::create_directory(s.file);
    CHECK(acquire(*s.cache, "one", s.device)->tier == Tier::built);
    CHECK(acquire(*s.cache, "one", s.device)->tier == Tier::built);
    CHECK(s.cache->stats().rejected.tampered == 2);
    CHECK(s.log.warnings().size() == 1);
  }
  SECTION("a link in the place of the folder that holds it") {
    std::filesystem::rename(s.file.parent_path(), elsewhere);
    std::filesystem::create_symlink(elsewhere, s.file.parent_path());
    CHECK(acquire(*s.cache, "one", s.device)->tier == Tier::built);
    CHECK(s.device.loads == 0);
    CHECK(contents(elsewhere / s.file.filename()) == s.good);
    CHECK(s.log.warnings().size() == 1);
  }
  SECTION("a file of another user") {
    if (geteuid() != 0) {
      WARN("skipped: giving a file away takes root");
      return;
    }
    REQUIRE(chown(s.file.c_str(), 12345, 12345) == 0);
    CHECK(s.rebuilds());
    CHECK(s.cache->stats().rejected.foreign == 1);
  }
}

TEST_CASE("cache::damaged_entry: another driver identity: counted as driver_changed, nothing handed over") {
  Stored s;
  SyntheticDevice newer;
  newer.facts().driver_identity.front().second = "1.1";
  const auto cache = s.open();
  CHECK(acquire(*cache, "one", newer)->tier == Tier::built);
  CHECK(acquire(*cache, "never stored", newer)->tier == Tier::built);
  CHECK(newer.loads == 0);
  CHECK(cache->stats().rejected.driver_changed == 1);
  CHECK(acquire(*cache, "one", newer)->tier == Tier::disk);
  CHECK(acquire(*cache, "one", s.device)->tier ==
        Tier::disk);  // the older driver's is still there, should it come back
  SyntheticDevice stranger;
  stranger.facts().device_identity.front().second = "Someone else";
  CHECK(acquire(*cache, "one", stranger)->tier == Tier::built);
  CHECK(cache->stats().rejected.driver_changed == 1);
}

TEST_CASE("cache::damaged_entry: a driver that keeps nothing finds another one's program driver_changed as well") {
  Workplace place;
  {
    SyntheticDevice device;
    REQUIRE(acquire(*place.open(), "one", device));
  }
  SyntheticDevice device;
  device.facts().driver_identity[0].second = "one that keeps nothing";
  device.facts().serializes = false;
  const auto cache = place.open();
  CHECK(acquire(*cache, "one", device)->tier == Tier::library);
  CHECK(acquire(*cache, "two", device)->tier == Tier::library);
  CHECK(cache->stats().rejected.driver_changed == 1);
  CHECK(cache->stats().absent == 1);
  CHECK(device.loads == 0);
}

TEST_CASE("cache::damaged_entry: a device that keeps nothing makes no cache folder") {
  Workplace place;
  SyntheticDevice device;
  device.facts().serializes = false;
  const auto cache = place.open();
  REQUIRE(acquire(*cache, "one", device));
  CHECK(cache->stats().absent == 1);
  CHECK_FALSE(std::filesystem::exists(place.config.directory));
}

TEST_CASE("cache::damaged_entry: what this process had and evicted is counted as evicted, not as absent") {
  Workplace place;
  place.config.max_programs = 1;
  place.config.policy = "lru";
  SyntheticDevice device;
  device.facts().serializes = false;
  const auto cache = place.open();
  for (const char* text : {"one", "two", "one"}) REQUIRE(acquire(*cache, text, device));
  CHECK(cache->stats().evicted == 1);
  CHECK(cache->stats().absent == 2);
  CHECK(cache->stats().misses == 3);
}

TEST_CASE("cache::damaged_entry: another driver identity with twenty entries: each driver_changed, none handed over") {
  constexpr int entries = 20;
  Workplace place;
  SyntheticDevice device;
  {
    const auto cache = place.open();
    for (int i = 0; i < entries; ++i) REQUIRE(acquire(*cache, std::to_string(i), device));
  }
  SyntheticDevice newer;
  newer.facts().driver_identity.back().second = "another build";
  {
    const auto cache = place.open();
    for (int i = 0; i < entries; ++i) CHECK(acquire(*cache, std::to_string(i), newer)->tier == Tier::built);
    CHECK(cache->stats().rejected.driver_changed == entries);
    CHECK(cache->stats().builds == entries);
    CHECK(newer.loads == 0);
  }
  const auto cache = place.open();
  for (int i = 0; i < entries; ++i) {
    CHECK(acquire(*cache, std::to_string(i), newer)->tier == Tier::disk);
    CHECK(acquire(*cache, std::to_string(i), device)->tier == Tier::disk);
  }
  CHECK(cache->stats().rejected.driver_changed == 0);
  CHECK(newer.false_bytes + device.false_bytes == 0);
}

TEST_CASE("cache::damaged_entry: lost manifests and .meta files lose no program") {
  Stored s;
  for (const char* extension : {".meta", ".json"}) {
    for (const auto& path : s.files(extension)) std::filesystem::remove(path);
  }
  CHECK(acquire(*s.cache, "one", s.device)->tier == Tier::disk);
  CHECK(acquire(*s.cache, "two", s.device)->tier == Tier::built);
  CHECK(s.files(".json").size() == 1);  // made anew by the next that writes
  s.cache.reset();
  CHECK(s.files(".meta").size() == 2);
}

}  // namespace
}  // namespace kiln::test
