// TieredCache: which tier answers, exactly counted; one build however many ask; and what the configuration changes.
#include "cache/tiered_cache.hpp"
#include "cache/single_flight.hpp"
#include "core/cache/rendezvous.hpp"
#include "core/cache/workplace.hpp"

#include <catch2/catch.hpp>

#include <latch>
#include <thread>

namespace kiln::test {
namespace {

TEST_CASE("cache::tiered_cache: built, then from memory; in a second cache from disk, then from memory") {
  Workplace place;
  SyntheticDevice device;
  {
    const auto cache = place.open();
    const auto first = acquire(*cache, "one", device);
    REQUIRE(first);
    CHECK(first->tier == Tier::built);
    CHECK(text_of(*first) == "one");
    const auto again = acquire(*cache, "one", device);
    CHECK(again->tier == Tier::memory);
    CHECK(again->build_ns == 0);
    CHECK(again->program.get() == first->program.get());
    const CacheStats stats = cache->stats();
    CHECK(stats.misses == 1);
    CHECK(stats.absent == 1);
    CHECK(stats.evicted + stats.timed_out == 0);
    CHECK(stats.memory_hits == 1);
    CHECK(stats.disk_hits == 0);
    CHECK(stats.programs_in_memory == 1);
    CHECK(stats.bytes_in_memory == 100);
    CHECK(stats.bytes_on_disk > 0);
  }
  CHECK(device.builds == 1);
  const auto cache = place.open();
  const auto stored = acquire(*cache, "one", device);
  REQUIRE(stored);
  CHECK(stored->tier == Tier::disk);
  CHECK(stored->build_ns > 0);
  CHECK(text_of(*stored) == "one");
  CHECK(acquire(*cache, "one", device)->tier == Tier::memory);
  CHECK(cache->stats().disk_hits == 1);
  CHECK(cache->stats().memory_hits == 1);
  CHECK(cache->stats().misses == 0);
  CHECK(device.builds == 1);
  CHECK(device.loads == 1);
  CHECK(device.false_bytes == 0);
  CHECK(place.log.warnings().empty());
}

TEST_CASE("cache::tiered_cache: 64 threads, one key: exactly one build") {
  Workplace place;
  SyntheticDevice device;
  const auto cache = place.open();
  constexpr int threads = 64;
  std::latch started(threads);
  device.on_build = [&](const KernelSource&) { started.wait(); };  // builds while the others are asking
  std::atomic<int> built{0}, right{0};
  std::atomic<std::uint64_t> took_ns_of_others{0};
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&] {
      started.count_down();
      const auto got = acquire(*cache, "one", device);
      if (got && text_of(*got) == "one") ++right;
      if (got && got->tier == Tier::built) ++built;
      if (got && got->tier != Tier::built) took_ns_of_others += got->build_ns;
    });
  }
  for (std::thread& thread : running) thread.join();
  CHECK(right == threads);
  CHECK(built == 1);
  CHECK(took_ns_of_others == 0);
  CHECK(device.builds == 1);
  CHECK(cache->stats().misses == 1);
  CHECK(cache->stats().memory_hits == threads - 1);
}

TEST_CASE("cache::tiered_cache: distinct keys are built at one time") {
  Workplace place;
  SyntheticDevice device;
  const auto cache = place.open();
  Rendezvous both(2);
  std::atomic<int> met{0};
  device.on_build = [&](const KernelSource&) { met += both.meet() ? 1 : 0; };
  std::thread other([&] { static_cast<void>(acquire(*cache, "one", device)); });
  static_cast<void>(acquire(*cache, "two", device));
  other.join();
  CHECK(met == 2);
  CHECK(device.builds == 2);
}

TEST_CASE("cache::tiered_cache: a build that fails for the moment answers all who wait, and the next one tries again") {
  Workplace place;
  SyntheticDevice device;
  const auto cache = place.open();
  device.fail_builds = true;
  device.fails_with =
      GENERATE(StatusCode::unavailable, StatusCode::device_lost, StatusCode::timeout, StatusCode::internal);
  const auto failed = acquire(*cache, "one", device);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == device.fails_with);
  CHECK_FALSE(acquire(*cache, "one", device));
  CHECK(device.builds == 2);
  CHECK(cache->stats().misses == 2);
  CHECK(cache->stats().negative_hits == 0);
  CHECK(place.files(".bin").empty());
  device.fail_builds = false;
  CHECK(acquire(*cache, "one", device)->tier == Tier::built);
}

TEST_CASE("cache::tiered_cache: what the compiler refuses is answered again without asking it, and never stored") {
  Workplace place;
  SyntheticDevice device, other;
  device.facts().serializes = GENERATE(true, false);
  const auto cache = place.open();
  device.fail_builds = other.fail_builds = true;
  const auto failed = acquire(*cache, "nonsense", device);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().text() == "invalid_argument: synthetic: line 1: what is 'nonsense'?");
  const auto again = acquire(*cache, "nonsense", device);
  REQUIRE_FALSE(again);
  CHECK(again.error().text() == failed.error().text());
  CHECK(device.builds == 1);
  CHECK(cache->stats().misses == 2);
  CHECK(cache->stats().negative_hits == 1);
  CHECK_FALSE(acquire(*cache, "other nonsense", device));
  CHECK(device.builds == 2);
  CHECK_FALSE(acquire(*cache, "nonsense", other));  // another device may think otherwise
  CHECK(other.builds == 1);
  CHECK(place.files(".bin").empty());
  device.fail_builds = false;
  CHECK(acquire(*place.open(), "nonsense", device)->program);  // not beyond the process
}

TEST_CASE("cache::tiered_cache: a driver that hangs in a build holds up nobody else for ever") {
  Workplace place;
  SyntheticDevice device;
  ProcessSharing sharing;
  sharing.flight_patience = std::chrono::milliseconds(30);
  const auto cache = place.open(sharing);
  std::latch hanging(1), gate(1);
  device.on_build = [&](const KernelSource&) {
    hanging.count_down();
    gate.wait();
  };
  Result<Acquired> built = internal_error("nothing yet");
  std::thread building([&] { built = acquire(*cache, "one", device); });
  hanging.wait();
  const auto refused = acquire(*cache, "one", device);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == StatusCode::timeout);
  CHECK(
      refused.error().message.starts_with("program 'the label of one' (" + key_for("one", device).digest.hex() + ")"));
  CHECK(refused.error().message.find("30 ms") != std::string::npos);
  CHECK(cache->stats().waits == 1);
  CHECK(cache->stats().timed_out == 1);
  gate.count_down();
  building.join();
  REQUIRE(built);
  CHECK(built->tier == Tier::built);
  CHECK(acquire(*cache, "one", device)->tier == Tier::memory);
  CHECK(acquire(*place.open(), "one", device)->tier == Tier::disk);
  CHECK(device.builds == 1);
}

TEST_CASE("cache::failed_builds: bounded, the oldest goes; failures of the moment are not kept") {
  SyntheticDevice device;
  FailedBuilds failures(2);
  const auto place_of = [&](const char* text) { return ProgramPlace{sha256(text), &device}; };
  failures.remember(place_of("one"), invalid_argument("first"));
  failures.remember(place_of("one"), invalid_argument("again"));
  failures.remember(place_of("two"), unsupported("second"));
  for (const StatusCode code : {StatusCode::unavailable, StatusCode::device_lost, StatusCode::timeout, StatusCode::io,
                                StatusCode::internal, StatusCode::corrupt, StatusCode::not_found}) {
    failures.remember(place_of("moment"), {code, "not for long"});
    CHECK_FALSE(failures.find(place_of("moment")));
  }
  CHECK(failures.find(place_of("one"))->message == "first");
  failures.remember(place_of("three"), invalid_argument("third"));
  CHECK_FALSE(failures.find(place_of("one")));
  CHECK(failures.find(place_of("two"))->text() == "unsupported: second");
  CHECK(failures.find(place_of("three")));
}

TEST_CASE("cache::tiered_cache: handles outlive eviction, and what is pinned beyond capacity is served uncached") {
  Workplace place;
  place.config.policy = "lru";  // "cost" compares measured times
  place.config.max_programs = 1;
  SyntheticDevice device;
  const auto cache = place.open();
  auto first = acquire(*cache, "one", device);
  const auto second = acquire(*cache, "two", device);
  REQUIRE(second);
  CHECK(text_of(*second) == "two");
  CHECK(acquire(*cache, "one", device)->tier == Tier::memory);
  CHECK(acquire(*cache, "two", device)->tier == Tier::disk);  // never an error, and not built again
  CHECK(cache->stats().programs_in_memory == 1);
  first = internal_error("let go");
  CHECK(acquire(*cache, "two", device)->tier == Tier::disk);
  CHECK(cache->stats().evictions == 1);
  CHECK(acquire(*cache, "two", device)->tier == Tier::memory);
  CHECK(device.builds == 2);
}

TEST_CASE("cache::tiered_cache: find() sees the memory tier only, and its pointer outlives an eviction") {
  Workplace place;
  place.config.max_programs = 1;
  place.config.policy = "lru";  // the newcomer is admitted
  SyntheticDevice device;
  const auto cache = place.open();
  const Digest one = key_for("one", device).digest;
  {
    const Guard guard = cache->enter();
    CHECK(cache->find(one, device, guard) == nullptr);
  }
  REQUIRE(acquire(*cache, "one", device));
  const Guard guard = cache->enter();
  const Program* found = cache->find(one, device, guard);
  REQUIRE(found != nullptr);
  CHECK(cache->stats().memory_hits == 1);
  REQUIRE(acquire(*cache, "two", device));
  CHECK(cache->find(one, device, guard) == nullptr);
  CHECK(static_cast<const SyntheticProgram*>(found)->text() == "one");
  CHECK(device.live == 2);
}

TEST_CASE("cache::tiered_cache: holds() answers for memory and disk, loads nothing and is no use") {
  Workplace place;
  SyntheticDevice device;
  const ProgramKey one = key_for("one", device), other = key_for("other", device);
  {
    const auto cache = place.open();
    CHECK_FALSE(cache->holds(one, device));
    REQUIRE(acquire(*cache, "one", device));
    CHECK(cache->holds(one, device));
    CHECK_FALSE(cache->holds(other, device));
  }
  const auto cache = place.open();
  CHECK(cache->holds(one, device));
  CHECK_FALSE(cache->holds(other, device));
  CHECK(device.loads == 0);
  const CacheStats stats = cache->stats();
  CHECK(stats.memory_hits + stats.disk_hits + stats.misses == 0);
}

TEST_CASE("cache::tiered_cache: a device that serializes nothing is served by the memory tier alone") {
  Workplace place;
  SyntheticDevice device;
  device.facts().serializes = false;
  {
    const auto cache = place.open();
    CHECK(acquire(*cache, "one", device)->tier == Tier::library);
    CHECK(acquire(*cache, "one", device)->tier == Tier::memory);
    CHECK(cache->stats().misses == 1);
    CHECK(cache->stats().memory_hits == 1);
    CHECK(cache->stats().bytes_on_disk == 0);
  }
  CHECK_FALSE(std::filesystem::exists(place.config.directory));  // no trace, no key
  CHECK_FALSE(std::filesystem::exists(place.config.key_file));
  CHECK(acquire(*place.open(), "one", device)->tier == Tier::library);
}

TEST_CASE("cache::tiered_cache: two devices of one identity share the disk and never a program") {
  Workplace place;
  SyntheticDevice device, twin;
  const auto cache = place.open();
  const auto first = acquire(*cache, "one", device);
  const auto second = acquire(*cache, "one", twin);
  CHECK(second->tier == Tier::disk);
  CHECK(first->program.get() != second->program.get());
  CHECK(twin.builds == 0);
}

TEST_CASE("cache::tiered_cache: with auto_save off nothing is stored before persist(), which says how much it stored") {
  Workplace place;
  place.config.auto_save = false;
  SyntheticDevice device;
  {
    const auto cache = place.open();
    REQUIRE(acquire(*cache, "one", device));
    REQUIRE(acquire(*cache, "two", device));
    CHECK(cache->stats().bytes_on_disk == 0);
  }
  const auto cache = place.open();
  CHECK(acquire(*cache, "one", device)->tier == Tier::built);
  CHECK(*cache->persist() == 1);
  CHECK(*cache->persist() == 0);
  CHECK(acquire(*place.open(), "one", device)->tier == Tier::disk);
  CHECK(acquire(*place.open(), "two", device)->tier == Tier::built);
}

TEST_CASE("cache::tiered_cache: a cache that was never used persists nothing and makes nothing") {
  Workplace place;
  const auto cache = place.open();
  CHECK(*cache->persist() == 0);
  CHECK(cache->stats().bytes_on_disk == 0);
  CHECK_FALSE(std::filesystem::exists(place.config.directory));
}

TEST_CASE("cache::tiered_cache: read_only reads and never writes") {
  Workplace place;
  SyntheticDevice device;
  place.config.read_only = true;
  CHECK(acquire(*place.open(), "one", device)->tier == Tier::built);
  CHECK_FALSE(std::filesystem::exists(place.config.directory));
  CHECK_FALSE(std::filesystem::exists(place.config.key_file));
  CHECK(place.log.said("no program is read from disk: folder " + place.config.directory.string()) == 1);

  place.config.read_only = false;
  REQUIRE(acquire(*place.open(), "one", device));
  place.config.read_only = true;
  const auto file = place.files(".bin").at(0);
  const auto meta = contents(place.files(".meta").at(0));
  {
    const auto cache = place.open();
    CHECK(acquire(*cache, "one", device)->tier == Tier::disk);
    CHECK(acquire(*cache, "two", device)->tier == Tier::built);
    CHECK(cache->persist().value_or(9) == 0);
  }
  CHECK(place.files(".bin").size() == 1);
  CHECK(contents(place.files(".meta").at(0)) == meta);
  overwrite(file, {});
  const auto cache = place.open();
  CHECK(acquire(*cache, "one", device)->tier == Tier::built);
  CHECK(cache->stats().rejected.corrupt == 1);
  CHECK(contents(file).empty());  // not even what is corrupt is removed
}

TEST_CASE("cache::tiered_cache: a folder with blanks and letters beyond ASCII is a folder") {
  Workplace place;
  place.config.directory = place.temporary.path() / "mein Ordner — 漢字" / "cache ";
  place.config.compression = "none";
  SyntheticDevice device;
  REQUIRE(acquire(*place.open(), "one", device));
  CHECK(acquire(*place.open(), "one", device)->tier == Tier::disk);
  CHECK(place.files(".bin").size() == 1);
}

TEST_CASE("cache::tiered_cache: a policy or a compression that is not there is refused with what there is") {
  Workplace place;
  Registry registry;
  REQUIRE(register_tiered_cache(registry).ok());
  CHECK_FALSE(register_tiered_cache(registry).ok());
  const CacheFactory make = *registry.cache("tiered");
  CHECK(make({{}, place.config}));
  place.config.policy = "mru";
  const std::string refusal = make({{}, place.config}).error().text();
  CHECK(refusal.find("'mru'") != std::string::npos);
  for (const char* known : {"lru", "sieve", "cost"}) {
    CHECK(refusal.find(known) != std::string::npos);
    place.config.policy = known;
    CHECK(make({{&place.log, LogLevel::warning}, place.config}));
  }
  CHECK(place.log.said("policy") == 0);
  for (const char* removed : {"s3fifo", "wtinylfu"}) {
    place.config.policy = removed;
    CHECK(make({{&place.log, LogLevel::warning}, place.config}));
    CHECK(place.log.said("policy '" + std::string(removed) + "' no longer exists: 'cost' is used") == 1);
  }
  place.config.policy = "lru";
  place.config.compression = "brotli";
  CHECK(make({{}, place.config}).error().text() ==
        "unsupported: cache 'tiered': compression 'brotli', expected 'zstd' or 'none'");
}

TEST_CASE("cache::tiered_cache: a key file inside the cache folder is refused, also where a link leads there") {
  Workplace place;
  const auto folder = place.config.directory;
  std::filesystem::create_directories(folder / "deep");
  std::filesystem::create_directory_symlink(folder / "deep", place.temporary.path() / "link");
  for (const auto& inside : {folder / "key", folder / "deep" / ".." / "key", folder / "missing" / "key",
                             place.temporary.path() / "link" / "key"}) {
    place.config.key_file = inside;
    const auto refused = TieredCache::create({{}, place.config});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().text() == "invalid_argument: cache 'tiered': key file " + inside.string() +
                                        ": is in the cache folder " + folder.string() +
                                        ", expected a file outside that folder");
  }
  place.config.key_file = folder.string() + "-key";
  CHECK(TieredCache::create({{}, place.config}));
  place.config.key_file = folder / "key";
  SyntheticDevice device;  // made without create(): memory only
  TieredCache unchecked({{&place.log, LogLevel::info}, place.config}, std::move(*make_eviction_policy("lru")), {}, {});
  CHECK(acquire(unchecked, "one", device)->tier == Tier::built);
  CHECK(unchecked.stats().absent == 1);
  CHECK(place.files(".bin").empty());
  CHECK(place.log.said("is in the cache folder") == 1);
}

TEST_CASE(
    "cache::tiered_cache: each acquisition that is no memory hit is one line for whoever asks, with who and where") {
  Workplace place;
  SyntheticDevice device;
  const auto told = [&](const std::string& what, const std::string& text) {
    return place.log.said(what + ": program 'the label of " + text + "' (" +
                          key_for(text, device).digest.hex().substr(0, 12) + ") on synthetic:0, ");
  };
  const auto open = [&](LogLevel level) {
    return std::move(TieredCache::create({{&place.log, level}, place.config}).value());
  };
  {
    const auto cache = open(LogLevel::debug);
    for (int i = 0; i < 3; ++i) REQUIRE(acquire(*cache, "one", device));
    CHECK(told("built", "one") == 1);
    device.fail_builds = true;
    CHECK_FALSE(acquire(*cache, "two", device));
    CHECK(told("failed", "two") == 1);
  }
  {
    const auto cache = open(LogLevel::debug);
    for (int i = 0; i < 3; ++i) REQUIRE(acquire(*cache, "one", device));
    CHECK(told("disk", "one") == 1);
    CHECK(place.log.said(": program ") == 3);
  }
  REQUIRE(acquire(*open(LogLevel::info), "one", device));
  CHECK(place.log.said(": program ") == 3);
  // At its end, how long it took.
  struct Last final : LogSink {
    std::string line;
    void write(LogLevel, std::string_view, std::string_view message) noexcept override {
      if (message.starts_with("disk: ")) line = message;
    }
  } last;
  const auto begun = Clock::now();
  REQUIRE(acquire(**TieredCache::create({{&last, LogLevel::debug}, place.config}), "one", device));
  const double most_ms = std::chrono::duration<double, std::milli>(Clock::now() - begun).count();
  REQUIRE_THAT(last.line, Catch::EndsWith(" ms"));
  const double ms = std::strtod(last.line.c_str() + last.line.rfind(' ', last.line.size() - 4), nullptr);
  CHECK(ms > 0);
  CHECK(ms < most_ms);
}

}  // namespace
}  // namespace kiln::test
