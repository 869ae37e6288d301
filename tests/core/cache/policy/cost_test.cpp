// CostPolicy: saved time for room and time, learned from intervals, refused newcomers, decay.
#include "core/cache/policy/policy_cache.hpp"

#include <rapidcheck.h>

namespace kiln::test {
namespace {

TEST_CASE("cache::policy::cost: of programs used alike, the dear and the small stay") {
  PolicyCache cache("cost", 8);
  for (int round = 0; round < 20; ++round) {
    for (std::uint64_t key = 0; key < 8; ++key) cache.get(key, 2, key < 4 ? 1000 : 10);  // four fit
    for (std::uint64_t key = 20; key < 24; ++key) cache.get(key, 8, 1000);               // one fits
  }
  for (std::uint64_t key = 0; key < 4; ++key) CHECK(cache.holds(key));
}

TEST_CASE("cache::policy::cost: a newcomer that is worth less than whom it would replace is refused") {
  PolicyCache cache("cost", 4);
  for (int round = 0; round < 5; ++round) {
    for (std::uint64_t key = 0; key < 4; ++key) cache.get(key, 1, 1000);
  }
  cache.get(10, 1, 1000);  // dear too, but seen once
  for (std::uint64_t key = 0; key < 4; ++key) CHECK(cache.holds(key));
  CHECK_FALSE(cache.holds(10));
  cache.get(11, 1, 1'000'000);  // seen once, and worth it
  CHECK(cache.holds(11));
  CHECK(cache.size() == 4);
}

TEST_CASE("cache::policy::cost: a refused newcomer that comes again and again gets in, and old favourites go") {
  PolicyCache cache("cost", 4);
  for (int i = 0; i < 400; ++i) cache.get(static_cast<std::uint64_t>(i % 4), 1, 1000);
  int misses = 0;
  for (int i = 0; i < 400; ++i) misses += cache.get(static_cast<std::uint64_t>(10 + i % 4), 1, 1000) ? 0 : 1;
  CHECK(misses < 100);
}

TEST_CASE("cache::policy::cost: what is learned of a program outlives its stay") {
  PolicyCache cache("cost", 4);
  for (int round = 0; round < 10; ++round) {
    for (std::uint64_t key = 0; key < 3; ++key) cache.get(key, 1, 1000);
  }
  // A storm of dear programs pushes them out.
  for (std::uint64_t key = 100; key < 140; ++key) {
    cache.get(key, 1, 1'000'000'000);
    cache.get(key, 1, 1'000'000'000);
  }
  REQUIRE_FALSE(cache.holds(0));
  PolicyCache fresh("cost", 4);
  for (std::uint64_t key = 100; key < 140; ++key) {
    fresh.get(key, 1, 1);
    fresh.get(key, 1, 1);
  }
  // Of the storm each is dear and came twice and is gone; when the old ones come back with cheap company, they stay.
  for (int i = 0; i < 3; ++i) cache.get(0, 1, 1'000'000'000);
  CHECK(cache.holds(0));
}

TEST_CASE("cache::policy::cost: in bursts, the one whose burst is over goes first") {
  // 0 to 3 come in bursts of eight, long apart; 4 and 5 come every twenty uses. All cost the same.
  PolicyCache cache("cost", 3);
  int steady_hits = 0;
  int steady = 0;
  for (int burst = 0; burst < 400; ++burst) {
    for (int i = 0; i < 8; ++i) cache.get(static_cast<std::uint64_t>(burst % 4), 1, 1000);
    const bool hit4 = cache.get(4, 1, 1000);
    const bool hit5 = cache.get(5, 1, 1000);
    if (burst < 100) continue;
    steady += 2;
    steady_hits += (hit4 ? 1 : 0) + (hit5 ? 1 : 0);
  }
  CHECK(steady_hits > steady * 9 / 10);
}

TEST_CASE("cache::policy::cost: a first dispatch that is measured later counts") {
  const auto policy = policy_named("cost");
  for (EntryId id = 0; id < 3; ++id) policy->inserted(id, {id, 10, 100});
  policy->updated(0, {0, 10, 100'000});
  policy->updated(1, {1, 10, 1'000});
  std::vector<EntryId> victims;
  REQUIRE(policy->choose(
      {3, 0, no_entry}, [](EntryId) { return true; }, victims));
  CHECK(victims == std::vector<EntryId>{2, 1, 0});
  // With programs bounded as well, each takes its share of the room: bytes matter only above that.
  const auto by_programs = policy_named("cost", 50);
  by_programs->inserted(0, {0, 40, 100});
  by_programs->inserted(1, {1, 2, 90});
  by_programs->inserted(2, {2, 200, 200});
  REQUIRE(by_programs->choose(
      {3, 0, no_entry}, [](EntryId) { return true; }, victims));
  CHECK(victims == std::vector<EntryId>{2, 1, 0});
}

}  // namespace
}  // namespace kiln::test
