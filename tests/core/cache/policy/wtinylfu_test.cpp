// WTinyLfuPolicy against the definition: a window, two queues and counts, one program a place.
#include "core/cache/policy/policy_cache.hpp"

#include <rapidcheck.h>

#include <list>

namespace kiln::test {
namespace {

// Counts exactly where the policy has a sketch: with twenty keys in 256 places a row that is the same.
class NaiveWTinyLfu {
 public:
  explicit NaiveWTinyLfu(std::size_t capacity) : capacity_(capacity) {}
  bool get(std::uint64_t key) {
    most_held_ = std::max(most_held_, held() + (holds(key) ? 0 : 1));
    count(key);
    for (auto* queue : {&window_, &probation_, &guarded_}) {
      const auto at = std::find(queue->begin(), queue->end(), key);
      if (at == queue->end()) continue;
      auto& to = queue == &window_ ? window_ : guarded_;
      to.splice(to.end(), *queue, at);
      while (guarded_.size() > 1 && guarded_.size() > (guarded_.size() + probation_.size()) / 5 * 4) {
        probation_.splice(probation_.end(), guarded_, guarded_.begin());
      }
      return true;
    }
    window_.push_back(key);
    std::list<std::uint64_t> candidates;
    while (window_.size() > 1) candidates.splice(candidates.end(), window_, window_.begin());
    if (held() + candidates.size() > capacity_) evict(candidates);
    probation_.splice(probation_.end(), candidates);
    return false;
  }

 private:
  std::size_t held() const { return window_.size() + probation_.size() + guarded_.size(); }
  bool holds(std::uint64_t key) const {
    const auto in = [&](const auto& queue) { return std::find(queue.begin(), queue.end(), key) != queue.end(); };
    return in(window_) || in(probation_) || in(guarded_);
  }
  void count(std::uint64_t key) {
    counts_[key] = std::min(15, counts_[key] + 1);
    if (++counted_ < 10 * most_held_) return;
    for (auto& [one, times] : counts_) times /= 2;
    counted_ /= 2;
  }
  void evict(std::list<std::uint64_t>& candidates) {
    auto& victims = !probation_.empty() ? probation_ : guarded_;
    if (!candidates.empty() && (victims.empty() || counts_[candidates.front()] <= counts_[victims.front()])) {
      candidates.pop_front();
    } else if (!victims.empty()) {
      victims.pop_front();
    } else {
      window_.pop_front();
    }
  }

  const std::size_t capacity_;
  std::list<std::uint64_t> window_, probation_, guarded_;  // oldest use first
  std::map<std::uint64_t, int> counts_;
  std::uint64_t counted_ = 0;
  std::uint64_t most_held_ = 0;
};

TEST_CASE("cache::policy::wtinylfu: where every use is told at once, it is the one of the definition") {
  CHECK(rc::check([] {
    const auto capacity = *rc::gen::inRange<std::size_t>(1, 12);
    const auto keys = *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::inRange<std::uint64_t>(0, 20));
    PolicyCache cache("wtinylfu", capacity);
    NaiveWTinyLfu naive(capacity);
    for (const std::uint64_t key : keys) RC_ASSERT(cache.get(key) == naive.get(key));
  }));
}

TEST_CASE("cache::policy::wtinylfu: a candidate stays only where it was used more often") {
  PolicyCache cache("wtinylfu", 4);
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t key = 0; key < 4; ++key) cache.get(key);
  }
  cache.get(10);  // in the window; nobody is a candidate but 3, which was used as often as 0
  cache.get(11);
  for (std::uint64_t key = 0; key < 3; ++key) CHECK(cache.holds(key));
  CHECK_FALSE(cache.holds(10));
  for (int i = 0; i < 4; ++i) cache.get(12);  // more often than any
  cache.get(13);
  CHECK(cache.holds(12));
}

TEST_CASE("cache::policy::wtinylfu: old use decays, so that a new favourite gets in") {
  PolicyCache cache("wtinylfu", 4);
  for (int i = 0; i < 100; ++i) cache.get(static_cast<std::uint64_t>(i % 4));
  int hits = 0;
  for (int i = 0; i < 400; ++i) hits += cache.get(static_cast<std::uint64_t>(10 + i % 4)) ? 1 : 0;
  CHECK(hits > 200);
}

}  // namespace
}  // namespace kiln::test
