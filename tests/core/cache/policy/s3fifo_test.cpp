// S3FifoPolicy against the definition: three queues, one program a place.
#include "cache/policy/s3fifo.hpp"
#include "core/cache/policy/policy_cache.hpp"

#include <rapidcheck.h>

#include <deque>

namespace kiln::test {
namespace {

class NaiveS3Fifo {
 public:
  explicit NaiveS3Fifo(std::size_t capacity) : capacity_(capacity) {}
  bool get(std::uint64_t key) {
    for (auto* queue : {&small_, &main_}) {
      for (auto& [held, uses] : *queue) {
        if (held != key) continue;
        uses = std::min(uses + 1, 3);
        return true;
      }
    }
    const auto ghost = std::find(ghosts_.begin(), ghosts_.end(), key);
    auto& queue = ghost != ghosts_.end() ? main_ : small_;
    if (ghost != ghosts_.end()) ghosts_.erase(ghost);
    // The share of the small queue is judged with the newcomer in it.
    if (small_.size() + main_.size() == capacity_) evict(&queue == &small_ ? 1 : 0);
    queue.emplace_back(key, 0);
    return false;
  }

 private:
  void evict(std::size_t newcomers_in_small) {
    while (true) {
      const bool over = small_.size() + newcomers_in_small > (small_.size() + main_.size() + 1) / 10;
      if (main_.empty() || (over && !small_.empty())) {
        const auto [key, uses] = small_.front();
        small_.pop_front();
        if (uses == 0) {
          ghosts_.push_back(key);
          if (ghosts_.size() > capacity_ + 1) ghosts_.pop_front();
          return;
        }
        main_.emplace_back(key, 0);
      } else {
        const auto [key, uses] = main_.front();
        main_.pop_front();
        if (uses == 0) return;
        main_.emplace_back(key, uses - 1);
      }
    }
  }

  const std::size_t capacity_;
  std::deque<std::pair<std::uint64_t, int>> small_, main_;  // oldest first
  std::deque<std::uint64_t> ghosts_;
};

TEST_CASE("cache::policy::s3fifo: where every use is told at once, it is the one of the definition") {
  // A bucket of ghosts holds eight: with at most seven ghosts none is lost early.
  CHECK(rc::check([] {
    const auto capacity = *rc::gen::inRange<std::size_t>(1, 7);
    const auto keys = *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::inRange<std::uint64_t>(0, 16));
    PolicyCache cache("s3fifo", capacity);
    NaiveS3Fifo naive(capacity);
    for (const std::uint64_t key : keys) RC_ASSERT(cache.get(key) == naive.get(key));
  }));
}

TEST_CASE("cache::policy::s3fifo: who comes back while remembered goes to the main queue at once") {
  PolicyCache cache("s3fifo", 5);
  for (std::uint64_t key = 0; key < 6; ++key) cache.get(key);
  REQUIRE_FALSE(cache.holds(0));
  cache.get(0);  // from the ghosts
  for (std::uint64_t key = 10; key < 30; ++key) cache.get(key);
  CHECK(cache.holds(0));
  CHECK_FALSE(cache.holds(1));
}

}  // namespace
}  // namespace kiln::test
