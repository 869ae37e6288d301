// EvictionPolicy: what every policy owes the memory tier, whatever the calls.
#include "core/cache/policy/policy_cache.hpp"

#include <rapidcheck.h>

#include <limits>

namespace kiln::test {
namespace {

TEST_CASE("cache::policy: the error for an unknown name lists the known ones") {
  const auto policy = make_eviction_policy("clock");
  REQUIRE_FALSE(policy);
  CHECK(policy.error().text() == "unsupported: policy 'clock': expected one of 'cost', 'lru', 'sieve'");
  for (const char* other : {"", "Cost", "cost ", "s3-fifo", "w-tinylfu", "tinylfu"}) {
    INFO(other);
    CHECK_FALSE(make_eviction_policy(other));
  }
}

TEST_CASE("cache::policy: every listed name is a policy, and removed names give cost") {
  for (const std::string_view name : eviction_policy_names) CHECK(make_eviction_policy(name));
  for (const std::string_view name : removed_policy_names) {
    const auto policy = make_eviction_policy(name);
    REQUIRE(policy);
    CHECK(dynamic_cast<const CostPolicy*>(policy->get()) != nullptr);
  }
}

TEST_CASE("cache::policy: a newcomer that is chosen goes first, with as many others as are needed beside it") {
  struct Case {
    RoomNeeded needed;
    std::uint64_t charge_of_newcomer;
    std::vector<EntryId> expected;
  };
  for (const Case& each : {Case{{0, 100, 9}, 60, {9, 1, 2}}, Case{{0, 90, 9}, 60, {9, 1}}, Case{{0, 60, 9}, 60, {9}},
                           Case{{3, 0, 9}, 60, {9, 1, 2}}, Case{{0, 120, 9}, 29, {9, 1, 2, 3}}}) {
    CAPTURE(each.needed.programs, each.needed.bytes);
    std::vector<EntryId> victims{7};  // of an earlier choice
    ChosenVictims chosen(each.needed, victims);
    for (const EntryId id : {1u, 2u, 3u}) chosen.add(id, 30);
    chosen.add(9, each.charge_of_newcomer);
    CHECK(victims == each.expected);
    CHECK(chosen.enough() == (each.charge_of_newcomer == 60));
  }
}

// Random calls, as a tier may make them, and what a tier relies on after each choose().
class Caller {
 public:
  explicit Caller(const std::string& name) : policy_(policy_named(name, *rc::gen::element(0u, 5u, 50u))) {}

  void step() {
    switch (*rc::gen::inRange(0, 8)) {
      case 0:
      case 1:
      case 2:
        return insert();
      case 3:
      case 4:
        return with_held([&](EntryId id) { policy_->used(id, *rc::gen::element(0u, 1u, 2u, 1000u)); });
      case 5:
        return with_held([&](EntryId id) {
          held_[id].charge = charge();
          held_[id].saved_ns = saved();
          policy_->updated(id, held_[id]);
        });
      case 6:
        return with_held([&](EntryId id) { erase(id); });
      default:
        return shed();
    }
  }

 private:
  static std::uint64_t charge() { return *rc::gen::element<std::uint64_t>(0, 1, 7, 30, 100); }
  static std::uint64_t saved() {
    return *rc::gen::element<std::uint64_t>(0, 1, 1000, 1'000'000'000, std::numeric_limits<std::uint64_t>::max());
  }

  template <class Call>
  void with_held(Call&& call) {
    if (held_.empty()) return;
    const auto at = std::next(held_.begin(), *rc::gen::inRange<std::ptrdiff_t>(0, std::ssize(ids())));
    call(at->first);
  }
  std::vector<EntryId> ids() const {
    std::vector<EntryId> all;
    for (const auto& [id, facts] : held_) all.push_back(id);
    return all;
  }

  void insert() {
    EntryId id = 0;
    while (held_.contains(id)) ++id;
    held_[id] = {*rc::gen::inRange<std::uint64_t>(0, 20), charge(), saved()};
    policy_->inserted(id, held_[id]);
    if (*rc::gen::inRange(0, 3) != 0) choose({*rc::gen::inRange<std::uint64_t>(0, 3), charge(), id});
  }
  void shed() { choose({*rc::gen::inRange<std::uint64_t>(0, 5), 3 * charge(), no_entry}); }

  void choose(const RoomNeeded& needed) {
    std::set<EntryId> evictable;
    for (const EntryId id : ids()) {
      if (id == needed.newcomer || *rc::gen::inRange(0, 4) != 0) evictable.insert(id);
    }
    std::vector<EntryId> victims{12345};
    const bool made = policy_->choose(
        needed, [&](EntryId id) { return evictable.contains(id); }, victims);
    const std::set<EntryId> distinct(victims.begin(), victims.end());
    RC_ASSERT(distinct.size() == victims.size());
    std::uint64_t bytes = 0;
    for (const EntryId id : victims) {
      RC_ASSERT(evictable.contains(id));
      bytes += held_[id].charge;
    }
    RC_ASSERT(made == (victims.size() >= needed.programs && bytes >= needed.bytes));
    if (!made) RC_ASSERT(distinct == evictable);
    // Nobody else leaves in vain beside a newcomer that is refused.
    if (made && distinct.contains(needed.newcomer) && victims.size() > 1) {
      const std::uint64_t last = held_[victims.back()].charge;
      RC_ASSERT(victims.size() - 1 < needed.programs || bytes - last < needed.bytes);
    }
    for (const EntryId id : victims) {
      if (*rc::gen::inRange(0, 5) != 0) erase(id);  // a tier may spare some
    }
  }
  void erase(EntryId id) {
    policy_->erased(id);
    held_.erase(id);
  }

  std::unique_ptr<EvictionPolicy> policy_;
  std::map<EntryId, EntryFacts> held_;
};

TEST_CASE("cache::policy: whatever the calls, victims are held, evictable, named once, and make the room") {
  for (const std::string& name : policy_names()) {
    INFO(name);
    CHECK(rc::check([&] {
      Caller caller(name);
      const int steps = *rc::gen::inRange(0, 200);
      for (int i = 0; i < steps; ++i) caller.step();
    }));
  }
}

TEST_CASE("cache::policy: with room for a thousand and more, too, none but the evictable are named") {
  for (const std::string& name : policy_names()) {
    INFO(name);
    const auto policy = policy_named(name);
    for (EntryId id = 0; id < 3000; ++id) policy->inserted(id, {mix(id), 10, 1 + id % 7});
    std::vector<EntryId> victims;
    // Fewer are evictable than a sample would meet.
    REQUIRE(policy->choose(
        {0, 30, no_entry}, [](EntryId id) { return id % 1000 == 999; }, victims));
    std::sort(victims.begin(), victims.end());
    CHECK(victims == std::vector<EntryId>{999, 1999, 2999});
    CHECK_FALSE(policy->choose(
        {0, 31, no_entry}, [](EntryId id) { return id % 1000 == 999; }, victims));
    CHECK(victims.size() == 3);
    REQUIRE(policy->choose(
        {3000, 0, no_entry}, [](EntryId) { return true; }, victims));
    CHECK(std::set<EntryId>(victims.begin(), victims.end()).size() == 3000);
  }
}

TEST_CASE("cache::policy: what is pinned stays, and a newcomer that finds no room is refused alone") {
  for (const std::string& name : policy_names()) {
    INFO(name);
    PolicyCache cache(name, 3);
    for (std::uint64_t key = 0; key < 3; ++key) cache.get(key);
    cache.pinned = {0, 1, 2};
    for (std::uint64_t key = 10; key < 40; ++key) cache.get(key);
    CHECK(cache.size() == 3);
    for (std::uint64_t key = 0; key < 3; ++key) CHECK(cache.holds(key));
    cache.pinned = {0, 2};
    for (int i = 0; i < 30; ++i) cache.get(50);  // asked for again and again, it gets the one place
    CHECK(cache.holds(0));
    CHECK(cache.holds(2));
    CHECK(cache.holds(50));
  }
}

TEST_CASE("cache::policy: equal calls give equal choices") {
  for (const std::string& name : policy_names()) {
    INFO(name);
    PolicyCache a(name, 40);
    PolicyCache b(name, 40);
    std::uint64_t key = 1;
    for (int i = 0; i < 3000; ++i) {
      key = mix(key);
      REQUIRE(a.get(key % 97 % 60, 1 + key % 5, 1 + key % 11) == b.get(key % 97 % 60, 1 + key % 5, 1 + key % 11));
    }
    CHECK(a.size() == b.size());
  }
}

// One program in three is of a set that fits; the others come once. How many of the set's requests are hits.
int hits_among_scans(const std::string& name) {
  PolicyCache cache(name, 20);
  std::uint64_t key = 1;
  std::uint64_t once = 1000;
  int hits = 0;
  for (int i = 0; i < 6000; ++i) {
    key = mix(key);
    hits += cache.get(key % 16) ? 1 : 0;
    cache.get(++once);
    cache.get(++once);
  }
  return hits;
}

TEST_CASE("cache::policy: scans of programs that come once do not push out those that come again") {
  const int lru = hits_among_scans("lru");
  CHECK(lru < 3000);
  for (const char* name : {"sieve", "cost"}) {
    INFO(name);
    CHECK(hits_among_scans(name) > lru + 1500);
  }
  CHECK(hits_among_scans("cost") > 5500);
}

}  // namespace
}  // namespace kiln::test
