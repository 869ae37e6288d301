// S3FifoPolicy against an independent model of the published algorithm, and against sequences worked by hand.
#include "cache/policy/s3fifo.hpp"
#include "core/cache/policy/policy_cache.hpp"

#include <rapidcheck.h>

#include <list>
#include <map>
#include <string>

namespace kiln::test {
namespace {

// Algorithm 1 of the paper in its own order: make room, then insert. An object leaves the small queue for the main one
// when it was used at all (see s3fifo.hpp). A ghost is known by the count of departures at its own: the paper's table.
class PublishedS3Fifo {
 public:
  explicit PublishedS3Fifo(std::size_t capacity) : capacity_(capacity) {}

  bool read(std::uint64_t key) {
    if (const auto held = uses_.find(key); held != uses_.end()) {
      if (held->second < 3) ++held->second;
      return true;
    }
    const bool ghost = is_ghost(key);
    ghosts_.erase(key);
    const bool to_small = !ghost;
    most_held_ = std::max(most_held_, uses_.size() + 1);
    while (uses_.size() >= capacity_) evict(to_small);
    (to_small ? small_ : main_).push_front(key);
    uses_[key] = 0;
    return false;
  }

 private:
  bool is_ghost(std::uint64_t key) const {
    const auto left = ghosts_.find(key);
    return left != ghosts_.end() && departures_ - left->second < most_held_;
  }

  // A tenth of what is held, with the newcomer, which is in its queue by then where the tier asks.
  void evict(bool newcomer_in_small) {
    const std::size_t small = small_.size() + (newcomer_in_small ? 1 : 0);
    const std::size_t all = uses_.size() + 1;
    if (!small_.empty() && (main_.empty() || 10 * small > all)) {
      evict_from_small();
    } else {
      evict_from_main();
    }
  }

  void evict_from_small() {
    const std::uint64_t key = small_.back();
    small_.pop_back();
    if (uses_[key] > 0) {
      uses_[key] = 0;
      main_.push_front(key);
      return;  // nothing left yet: read() goes on
    }
    uses_.erase(key);
    ghosts_[key] = ++departures_;
  }

  void evict_from_main() {
    while (uses_[main_.back()] > 0) {
      --uses_[main_.back()];
      main_.splice(main_.begin(), main_, std::prev(main_.end()));
      if (!small_.empty()) return;  // the share is judged again; it has not changed, and so is the answer
    }
    uses_.erase(main_.back());
    main_.pop_back();
  }

  const std::size_t capacity_;
  std::size_t most_held_ = 0;
  std::uint64_t departures_ = 0;                   // from the small queue
  std::list<std::uint64_t> small_, main_;          // newest first
  std::map<std::uint64_t, int> uses_;              // of what is held
  std::map<std::uint64_t, std::uint64_t> ghosts_;  // key → number of its departure
};

// "h" for each hit, "-" for each miss.
std::string outcomes(PolicyCache& cache, const std::vector<std::uint64_t>& keys) {
  std::string text;
  for (const std::uint64_t key : keys) text += cache.get(key) ? 'h' : '-';
  return text;
}

std::string held(const PolicyCache& cache) {
  std::string text;
  for (std::uint64_t key = 0; key < 100; ++key) {
    if (cache.holds(key)) text += (text.empty() ? "" : " ") + std::to_string(key);
  }
  return text;
}

TEST_CASE("cache::policy::s3fifo: where every use is told at once, it is the published algorithm") {
  // A bucket of the ghosts' table holds eight: with at most eight ghosts none is lost before its time.
  CHECK(rc::check([] {
    const auto capacity = *rc::gen::inRange<std::size_t>(1, 8);
    const auto keys = *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::inRange<std::uint64_t>(0, 16));
    PolicyCache cache("s3fifo", capacity);
    PublishedS3Fifo published(capacity);
    for (const std::uint64_t key : keys) RC_ASSERT(cache.get(key) == published.read(key));
  }));
}

TEST_CASE("cache::policy::s3fifo: long sequences of few and of many keys, against the published algorithm") {
  std::uint64_t state = 88172645463325252ull;  // xorshift64
  const auto random = [&](std::uint64_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
  };
  for (const std::size_t capacity : {1u, 2u, 3u, 5u, 7u}) {
    for (const std::uint64_t keys : {std::uint64_t{3}, std::uint64_t{9}, std::uint64_t{40}}) {
      CAPTURE(capacity, keys);
      PolicyCache cache("s3fifo", capacity);
      PublishedS3Fifo published(capacity);
      int differ = 0;
      for (int i = 0; i < 4000; ++i) {
        const std::uint64_t key = std::min(random(keys), random(keys));
        if (cache.get(key) != published.read(key)) ++differ;
      }
      CHECK(differ == 0);
    }
  }
}

// Ten places, so that the small queue's share is one.
TEST_CASE("cache::policy::s3fifo: by hand: one-hit wonders leave by the small queue, what was used stays") {
  PolicyCache cache("s3fifo", 10);
  CHECK(outcomes(cache, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) == "----------");
  CHECK(outcomes(cache, {0, 1}) == "hh");
  // 10 comes: 0 and 1 are spared for the main queue, 2 leaves. 11 and 12: 3 and 4 leave.
  CHECK(outcomes(cache, {10, 11, 12}) == "---");
  CHECK(held(cache) == "0 1 5 6 7 8 9 10 11 12");
  // A scan takes the small queue's, never the main queue's.
  for (std::uint64_t key = 30; key < 60; ++key) cache.get(key);
  CHECK(cache.holds(0));
  CHECK(cache.holds(1));
  CHECK_FALSE(cache.holds(12));
}

TEST_CASE("cache::policy::s3fifo: by hand: who comes back while remembered goes to the main queue at once") {
  PolicyCache cache("s3fifo", 3);
  CHECK(outcomes(cache, {0, 1, 2}) == "---");
  CHECK(outcomes(cache, {3}) == "-");  // 0 leaves, a ghost
  CHECK(outcomes(cache, {0}) == "-");  // to the main queue; 1 leaves
  CHECK(held(cache) == "0 2 3");
  CHECK(outcomes(cache, {20, 21, 22, 23, 24}) == "-----");
  CHECK(held(cache) == "0 23 24");
  // 1 left five departures ago, more than are remembered: it is a newcomer, and leaves as one.
  CHECK(outcomes(cache, {1, 25, 26}) == "---");
  CHECK(held(cache) == "0 25 26");
}

TEST_CASE("cache::policy::s3fifo: by hand: a ghost is remembered for as many departures as entries were held") {
  // Three places and the newcomer: four.
  for (const std::uint64_t departures : {std::uint64_t{3}, std::uint64_t{4}}) {
    CAPTURE(departures);
    PolicyCache cache("s3fifo", 3);
    CHECK(outcomes(cache, {0, 1, 2, 3}) == "----");  // 0 left
    for (std::uint64_t i = 0; i < departures; ++i) cache.get(40 + i);
    cache.get(0);
    for (std::uint64_t key = 60; key < 66; ++key) cache.get(key);
    CHECK(cache.holds(0) == (departures < 4));
  }
}

TEST_CASE("cache::policy::s3fifo: by hand: the main queue spares what was used, a use a round, three at most") {
  // 0 and 1 to the main queue by way of the ghosts: two places, so that nothing else is in it for long.
  PolicyCache cache("s3fifo", 2);
  CHECK(outcomes(cache, {0, 1, 2, 3}) == "----");  // 0 and 1 are ghosts; 2 and 3 in the small queue
  CHECK(outcomes(cache, {0, 1}) == "--");          // 2, then 3 leave: main queue, newest first: 1 0
  CHECK(held(cache) == "0 1");
  CHECK(outcomes(cache, {0, 0, 0, 0, 0}) == "hhhhh");  // counted to three
  // A newcomer in the small queue, which is all there is of it: the main queue gives way, and 0 is the oldest there.
  // Spared once, it becomes the newest; 1 was not used and leaves.
  CHECK(outcomes(cache, {9}) == "-");
  CHECK(held(cache) == "0 9");
  // The small queue is more than a tenth: 9 leaves for 10, and 10 for 11. 0 keeps the two uses it has left.
  CHECK(outcomes(cache, {10, 11}) == "--");
  CHECK(held(cache) == "0 11");
  // 9 comes back from the ghosts: the small queue gives way first, 11 leaves.
  CHECK(outcomes(cache, {9}) == "-");
  CHECK(held(cache) == "0 9");
  CHECK(outcomes(cache, {10}) == "-");  // likewise; main, oldest first: 0 (two uses), 9: 0 is spared, 9 leaves
  CHECK(held(cache) == "0 10");
}

}  // namespace
}  // namespace kiln::test
