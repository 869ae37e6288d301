// LruPolicy against the definition: a list by last use.
#include "core/cache/policy/policy_cache.hpp"

#include <rapidcheck.h>

#include <list>

namespace kiln::test {
namespace {

class ListLru {
 public:
  explicit ListLru(std::uint64_t capacity) : capacity_(capacity) {}
  bool get(std::uint64_t key, std::uint64_t bytes) {
    const auto held = std::find_if(list_.begin(), list_.end(), [&](const auto& one) { return one.first == key; });
    if (held != list_.end()) {
      list_.splice(list_.begin(), list_, held);
      return true;
    }
    list_.emplace_front(key, bytes);
    bytes_ += bytes;
    for (; bytes_ > capacity_; list_.pop_back()) bytes_ -= list_.back().second;
    return false;
  }

 private:
  const std::uint64_t capacity_;
  std::uint64_t bytes_ = 0;
  std::list<std::pair<std::uint64_t, std::uint64_t>> list_;
};

TEST_CASE("cache::policy::lru: where every use is told at once, it is exact") {
  CHECK(rc::check([] {
    const auto capacity = *rc::gen::inRange<std::uint64_t>(4, 30);
    const auto keys = *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::inRange<std::uint64_t>(0, 20));
    PolicyCache cache("lru", capacity);
    ListLru list(capacity);
    for (const std::uint64_t key : keys) RC_ASSERT(cache.get(key, 1 + key % 4) == list.get(key, 1 + key % 4));
  }));
}

TEST_CASE("cache::policy::lru: uses that are told late count from when they are told, oldest first") {
  const auto policy = policy_named("lru");
  for (EntryId id = 0; id < 4; ++id) policy->inserted(id, {id, 1, 1});
  policy->used(2, 1);
  policy->used(0, 3);
  policy->used(1, 0);  // not used at all
  std::vector<EntryId> victims;
  REQUIRE(policy->choose(
      {4, 0, no_entry}, [](EntryId) { return true; }, victims));
  CHECK(victims == std::vector<EntryId>{1, 3, 2, 0});
}

}  // namespace
}  // namespace kiln::test
