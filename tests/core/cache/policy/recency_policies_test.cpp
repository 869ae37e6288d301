// EntryQueue against a list, LruPolicy and SievePolicy against their definitions.
#include "cache/eviction_policy.hpp"
#include "core/cache/policy/policy_cache.hpp"

#include <rapidcheck.h>

#include <list>

namespace kiln::test {
namespace {

std::vector<EntryId> forwards(const EntryQueue& queue) {
  std::vector<EntryId> ids;
  for (EntryId id = queue.oldest(); id != no_entry; id = queue.newer(id)) ids.push_back(id);
  return ids;
}

std::vector<EntryId> backwards(const EntryQueue& queue) {
  std::vector<EntryId> ids;
  for (EntryId id = queue.newest(); id != no_entry; id = queue.older(id)) ids.insert(ids.begin(), id);
  return ids;
}

TEST_CASE("cache::policy::entry_queue: a list, whatever the moves") {
  CHECK(rc::check([] {
    EntryQueue queue;
    std::vector<EntryId> model;
    for (const auto& [id, removed] : *rc::gen::container<std::vector<std::pair<EntryId, bool>>>(
             rc::gen::pair(rc::gen::inRange<EntryId>(0, 12), rc::gen::arbitrary<bool>()))) {
      const bool held = std::erase(model, id) != 0;
      if (removed) {
        if (held) queue.remove(id);
        continue;
      }
      queue.reserve(id);
      held ? queue.move_to_newest(id) : queue.push_newest(id);
      model.push_back(id);
    }
    RC_ASSERT(forwards(queue) == model);
    RC_ASSERT(backwards(queue) == model);
    RC_ASSERT(queue.size() == model.size());
  }));
}

// A list by last use.
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

// A queue, a mark and a hand, one program a place.
class NaiveSieve {
 public:
  explicit NaiveSieve(std::size_t capacity) : capacity_(capacity) {}
  bool get(std::uint64_t key) {
    for (auto& [held, marked] : queue_) {
      if (held == key) return marked = true;
    }
    if (queue_.size() == capacity_) evict();
    queue_.emplace_back(key, false);
    return false;
  }

 private:
  void evict() {
    while (queue_[hand_].second) {
      queue_[hand_].second = false;
      hand_ = (hand_ + 1) % queue_.size();
    }
    queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(hand_));  // the hand points at the next newer one now
    if (hand_ == queue_.size()) hand_ = 0;
  }

  const std::size_t capacity_;
  std::vector<std::pair<std::uint64_t, bool>> queue_;  // oldest first
  std::size_t hand_ = 0;
};

TEST_CASE("cache::policy::sieve: where every use is told at once, it is the sieve of the definition") {
  CHECK(rc::check([] {
    const auto capacity = *rc::gen::inRange<std::size_t>(1, 12);
    const auto keys = *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::inRange<std::uint64_t>(0, 20));
    PolicyCache cache("sieve", capacity);
    NaiveSieve naive(capacity);
    for (const std::uint64_t key : keys) RC_ASSERT(cache.get(key) == naive.get(key));
  }));
}

TEST_CASE("cache::policy::sieve: a program used since the hand passed is spared once") {
  PolicyCache cache("sieve", 3);
  for (std::uint64_t key = 0; key < 3; ++key) cache.get(key);
  cache.get(0);
  cache.get(3);  // spares 0, takes 1
  CHECK(cache.holds(0));
  CHECK_FALSE(cache.holds(1));
  cache.get(4);  // the hand goes on: 2
  CHECK_FALSE(cache.holds(2));
  cache.get(5);  // 3, not used either
  cache.get(6);
  CHECK(cache.holds(0));  // the hand has not come round yet
}

}  // namespace
}  // namespace kiln::test
