// What the policy is told that a program's loss costs: getting it back as it was got, and the excess of its first
// dispatch.
#include "core/cache/workplace.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <map>
#include <thread>

namespace kiln::test {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t ns_per_ms = 1'000'000;
constexpr std::uint64_t build_ns = 500 * ns_per_ms;

// Keeps everything and remembers what it was told.
class Listening final : public EvictionPolicy {
 public:
  explicit Listening(std::map<EntryId, std::uint64_t>& saved_ns) : saved_ns_(saved_ns) {}
  void inserted(EntryId id, const EntryFacts& facts) override { saved_ns_[id] = facts.saved_ns; }
  void used(EntryId, std::uint32_t) noexcept override {}
  void updated(EntryId id, const EntryFacts& facts) noexcept override { saved_ns_[id] = facts.saved_ns; }
  void erased(EntryId) noexcept override {}
  bool choose(const RoomNeeded&, const Evictable&, std::vector<EntryId>&) override { return false; }

 private:
  std::map<EntryId, std::uint64_t>& saved_ns_;
};

struct SlowToBuild : Workplace {
  SyntheticDevice device;
  std::map<EntryId, std::uint64_t> saved_ns;

  SlowToBuild() {
    device.on_build = [](const KernelSource&) { std::this_thread::sleep_for(std::chrono::nanoseconds(build_ns)); };
  }
  std::unique_ptr<TieredCache> listen() {
    saved_ns.clear();
    return std::make_unique<TieredCache>(CacheContext{{}, config}, std::make_unique<Listening>(saved_ns),
                                         ProcessSharing{}, MemorySources{});
  }
};

Measurement dispatch_of(std::uint64_t ms, bool first_run) {
  Measurement measurement;
  measurement.wall_ns = ms * ns_per_ms;
  measurement.first_run = first_run;
  return measurement;
}

TEST_CASE("cache::cost_of_loss: what was built costs its build, what was loaded from disk its load alone") {
  SlowToBuild place;
  {
    const auto cache = place.listen();
    REQUIRE(acquire(*cache, "one", place.device)->tier == Tier::built);
    CHECK(place.saved_ns.at(0) >= build_ns);
  }
  const auto cache = place.listen();
  REQUIRE(acquire(*cache, "one", place.device)->tier == Tier::disk);
  CHECK(place.saved_ns.at(0) < build_ns);
  CHECK(place.saved_ns.at(0) > 0);
  // The statistics keep counting the build: without the cache it would have been made.
  const double before = cache->stats().saved_ms;
  REQUIRE(acquire(*cache, "one", place.device)->tier == Tier::memory);
  CHECK(cache->stats().saved_ms - before >= static_cast<double>(build_ns / ns_per_ms) - 0.001);
}

TEST_CASE("cache::cost_of_loss: of the first dispatch what it takes longer than a later one") {
  SlowToBuild place;
  const auto cache = place.listen();
  REQUIRE(acquire(*cache, "one", place.device));
  const std::uint64_t restore_ns = place.saved_ns.at(0);
  const ProgramKey key = key_for("one", place.device);
  cache->record(key, place.device, dispatch_of(500, true), 0);
  CHECK(place.saved_ns.at(0) == restore_ns + 500 * ns_per_ms);  // no later one is known yet
  cache->record(key, place.device, dispatch_of(20, false), 1);
  CHECK(place.saved_ns.at(0) == restore_ns + 480 * ns_per_ms);
  cache->record(key, place.device, dispatch_of(30, false), 1);  // the latest, not one more
  CHECK(place.saved_ns.at(0) == restore_ns + 470 * ns_per_ms);
  cache->record(key, place.device, dispatch_of(900, false), 1);
  CHECK(place.saved_ns.at(0) == restore_ns);
}

}  // namespace
}  // namespace kiln::test
