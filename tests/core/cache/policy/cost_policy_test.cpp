// CostPolicy: saved time for room and time, learned from intervals, refused newcomers, decay; its ghosts and histories.
#include "core/cache/policy/policy_cache.hpp"

#include <rapidcheck.h>

#include <list>

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

TEST_CASE("cache::policy::cost: among many programs room is made for one of them") {
  constexpr std::uint64_t many = 1100;  // more than are ranked at one time
  PolicyCache cache("cost", many);
  for (int round = 0; round < 2; ++round) {
    for (std::uint64_t key = 0; key < many; ++key) cache.get(key, 1, 1000);
  }
  CHECK(cache.size() == many);
  cache.get(many, 1, 1'000'000'000);
  CHECK(cache.holds(many));
  CHECK(cache.size() == many);
}

TEST_CASE("cache::policy::cost: of more than 1024 programs so many are looked at, and some of them twice") {
  const auto policy = policy_named("cost");
  for (EntryId id = 0; id < 3000; ++id) policy->inserted(id, {id, 1, 1000});
  int looked_at = 0;
  const auto evictable = [&](EntryId) { return ++looked_at != 0; };
  for (const std::uint64_t programs : {1, 500}) {
    std::vector<EntryId> victims;
    looked_at = 0;
    REQUIRE(policy->choose({programs, 0, no_entry}, evictable, victims));
    CHECK(looked_at == 1024);
    CHECK(std::set<EntryId>(victims.begin(), victims.end()).size() == programs);
    CHECK(victims.size() == programs);
  }
  std::vector<EntryId> victims;
  CHECK_FALSE(policy->choose(
      {1, 0, no_entry}, [](EntryId) { return false; }, victims));
  CHECK(victims.empty());
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

// The ages from 31 to 62 uses are one class.
TEST_CASE("cache::policy::cost: the expected value is computed once for each class of ages") {
  const auto policy = policy_named("cost");
  policy->inserted(0, {0, 10, 100});
  policy->inserted(1, {1, 10, 100});
  policy->inserted(2, {2, 10, 100});
  policy->used(2, 30);
  std::vector<EntryId> victims;
  const auto least_of_two = [&] {
    REQUIRE(policy->choose(
        {1, 0, no_entry}, [](EntryId id) { return id < 2; }, victims));
    return victims;
  };
  REQUIRE(policy->choose(
      {1, 0, no_entry}, [](EntryId id) { return id == 0; }, victims));
  // The more entries are held, the longer a use counts, and the less often another one is expected.
  for (EntryId id = 3; id < 23; ++id) policy->inserted(id, {id, 10, 100});
  SECTION("in the same class the expectation of the first is kept, and is the higher one") {
    CHECK(least_of_two() == std::vector<EntryId>{1});
  }
  SECTION("in the next class both are worked out, and are equal: the lower number goes") {
    policy->used(2, 20);
    CHECK(least_of_two() == std::vector<EntryId>{0});
  }
  SECTION("after a use it is worked out, and is higher than that of the one that was not used") {
    policy->used(0, 1);
    CHECK(least_of_two() == std::vector<EntryId>{1});
  }
}

TEST_CASE("cache::policy::ghost_table: nothing is known beyond the bound, nor for longer than it says") {
  CHECK(rc::check([] {
    const auto bound = *rc::gen::inRange<std::size_t>(1, 40);
    GhostTable<std::uint64_t> ghosts;
    ghosts.reserve(bound);
    std::list<std::pair<std::uint64_t, std::uint64_t>> notes;  // oldest first, as long as they may be known
    for (const auto& [hash, take] : *rc::gen::container<std::vector<std::pair<std::uint64_t, bool>>>(
             rc::gen::pair(rc::gen::inRange<std::uint64_t>(0, 60), rc::gen::arbitrary<bool>()))) {
      if (take) {
        const auto found = ghosts.take(hash);
        const auto noted =
            std::find_if(notes.rbegin(), notes.rend(), [&, hash = hash](const auto& n) { return n.first == hash; });
        if (found) {
          RC_ASSERT(noted != notes.rend());
          RC_ASSERT(*found == noted->second);
        }
        RC_ASSERT(!ghosts.take(hash));  // it was forgotten
      } else {
        const std::uint64_t value = notes.empty() ? 0 : notes.back().second + 1;
        ghosts.note(hash, value);
        notes.emplace_back(hash, value);
        if (notes.size() > bound) notes.pop_front();
      }
      RC_ASSERT(ghosts.size() <= bound);
    }
  }));
}

TEST_CASE("cache::policy::ghost_table: it forgets few early, and growing forgets none") {
  GhostTable<int> ghosts;
  CHECK_FALSE(ghosts.take(1));
  ghosts.note(1, 1);  // without room: not noted
  CHECK(ghosts.size() == 0);
  ghosts.reserve(1000);
  for (int i = 0; i < 5000; ++i) ghosts.note(static_cast<std::uint64_t>(i), i);
  CHECK(ghosts.size() > 950);
  CHECK(ghosts.size() <= 1000);
  const std::size_t before = ghosts.size();
  ghosts.reserve(4000);
  CHECK(ghosts.capacity() == 4000);
  CHECK(ghosts.size() >= before);
  CHECK(ghosts.take(4999) == 4999);
  CHECK_FALSE(ghosts.take(4999));
}

namespace {

struct Counted {
  static inline std::size_t made = 0;
  Counted() { ++made; }
};

}  // namespace

TEST_CASE(
    "cache::policy::ghost_table: growing by a few keys at a time makes few places more than are there in the end") {
  Counted::made = 0;
  GhostTable<Counted> ghosts;
  constexpr std::size_t most = 16'000;
  for (std::size_t keys = 8; keys <= most; keys += 8) ghosts.reserve(keys);
  CHECK(ghosts.capacity() == most);
  // Places in the end: at most 4 a key; each growth before took half of the next.
  CHECK(Counted::made <= 8 * most);
}

constexpr double half_life = 1000;

// A program used every `interval`, so long that its intervals are what counts.
UseHistory regular(std::uint64_t interval, std::uint64_t& now) {
  UseHistory history;
  for (int i = 0; i < 100; ++i) history.used(now += interval, 1, half_life);
  return history;
}

TEST_CASE("cache::policy::use_history: who comes more often is expected more") {
  std::uint64_t now = 0;
  double before = 2;
  for (const std::uint64_t interval : {1, 4, 16, 64, 256}) {
    const double prospect = regular(interval, now).prospect(0, half_life);
    CHECK(prospect < before);
    CHECK(prospect > 0.2 / static_cast<double>(interval));
    before = prospect;
  }
}

TEST_CASE("cache::policy::use_history: what is regular is awaited until it is late") {
  std::uint64_t now = 0;
  UseHistory history = regular(100, now);
  const double fresh = history.prospect(history.age_class(now), half_life);
  CHECK(history.prospect(history.age_class(now + 70), half_life) > fresh);       // due soon
  CHECK(history.prospect(history.age_class(now + 300), half_life) < fresh / 3);  // it did not come
}

TEST_CASE("cache::policy::use_history: any sequence gives a prospect, never below none nor above two a unit of time") {
  CHECK(rc::check([] {
    UseHistory history;
    std::uint64_t now = *rc::gen::inRange<std::uint64_t>(0, 1000);
    for (const auto& [gap, times] : *rc::gen::container<std::vector<std::pair<std::uint64_t, std::uint32_t>>>(
             rc::gen::pair(rc::gen::element<std::uint64_t>(1, 2, 5, 100, 1u << 20, std::uint64_t{1} << 40),
                           rc::gen::element(1u, 2u, 60u, 300u, 4'000'000'000u)))) {
      now += gap + times;
      history.used(now, times, half_life);
      for (const std::uint64_t age :
           {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1000}, std::uint64_t{1} << 50}) {
        const double prospect = history.prospect(history.age_class(now + age), half_life);
        RC_ASSERT(prospect >= 0);
        RC_ASSERT(prospect <= 2);
      }
    }
  }));
}

// By another program, from the description of the model.
TEST_CASE("cache::policy::use_history: classes of ages and prospects as computed elsewhere") {
  UseHistory once;
  once.used(100, 1, half_life);
  const std::pair<std::uint64_t, std::uint32_t> classes[] = {
      {0, 0}, {1, 1}, {2, 1}, {3, 2}, {6, 2}, {7, 3}, {(1u << 23) - 2, 22}, {(1u << 23) - 1, 23}, {1u << 30, 23}};
  for (const auto& [age, expected] : classes) CHECK(once.age_class(100 + age) == expected);
  using Uses = std::vector<std::pair<std::uint64_t, std::uint32_t>>;  // time, how many
  const Uses single{{100, 1}}, thrice{{100, 1}, {108, 1}, {116, 1}};
  Uses many;
  for (std::uint64_t now = 4; now <= 1200; now += 4) many.emplace_back(now, 1);
  struct Case {
    Uses uses;
    double half_life;
    std::uint64_t now;
    double prospect;
  };
  for (const Case& each :
       {Case{single, 64, 100, 0.008516262888}, Case{single, 64, 101, 0.008372202968},
        Case{thrice, 64, 116, 0.0388542073}, Case{thrice, 64, 125, 0.06025478813}, Case{thrice, 64, 150, 0.01202160912},
        Case{{{10, 1}, {20, 2}, {50, 3}}, 256, 52, 0.05604071581}, Case{{{1, 1}, {2, 100}}, 32, 2, 1.85030898},
        Case{many, 1000, 1200, 0.1982530574}, Case{many, 1000, 1300, 0.02538449135},
        Case{{{5, 1}, {7, 1}, {100, 1}, {101, 1}}, 128, 103, 0.08798715391},
        Case{{{1, 200}, {300, 64}, {301, 1}}, 500, 310, 0.004036521593}}) {
    CAPTURE(each.uses.size(), each.now);
    UseHistory history;
    for (const auto& [now, times] : each.uses) history.used(now, times, each.half_life);
    CHECK(history.prospect(history.age_class(each.now), each.half_life) == Approx(each.prospect).epsilon(1e-5));
  }
}

}  // namespace
}  // namespace kiln::test
