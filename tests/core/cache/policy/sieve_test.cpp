// SievePolicy against the definition: a queue, a mark and a hand, one program a place.
#include "core/cache/policy/policy_cache.hpp"

#include <rapidcheck.h>

namespace kiln::test {
namespace {

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
