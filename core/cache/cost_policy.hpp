// CostPolicy, the default: the program that is expected to save the least time for its room leaves first.
//
// From the intervals at which a program was used before, here or before it left (ghosts), follows how many uses to
// expect for each unit of time that it stays (UseHistory::prospect). That, times saved_ns ÷ weight, is its worth. A
// program that is used in bursts loses its worth soon after a burst; one that is used rarely and regularly stays.
// Thread-safety and ownership: as EvictionPolicy. The newcomer is refused where an entry that would have to leave for
// it is worth more.
#pragma once

#include "cache/eviction_policy.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace kiln {

// Spreads a 64-bit hash over all its bits, for tables that take a few of them. Distinct hashes stay distinct.
constexpr std::uint64_t mix(std::uint64_t hash) noexcept {
  hash = (hash ^ (hash >> 32)) * 0x9e3779b97f4a7c15u;
  hash = (hash ^ (hash >> 29)) * 0xd6e8feb86659fd93u;
  return hash ^ (hash >> 32);
}

// What is still known about keys whose programs left, by the hash of the key. Bounded: a key is known until `capacity`
// others were noted after it, or earlier where its bucket is full: the oldest of a bucket makes place. O(1); reserve()
// O(1) on average. Invariant: a hash stands in the table at most once.
template <class Value>
class GhostTable {
 public:
  // Room for at least so many keys; it never shrinks. std::bad_alloc leaves the table as it was.
  void reserve(std::size_t keys) {
    if (keys <= capacity_) return;
    // Twice as many places as keys: of eight places four are taken on average, so that full buckets are rare.
    const std::size_t size = std::bit_ceil(2 * keys / ways + 1);
    if (size > buckets_.size()) grow(size);
    capacity_ = keys;
  }

  void note(std::uint64_t hash, const Value& value) noexcept {
    if (buckets_.empty()) return;
    Bucket& bucket = bucket_in(buckets_, hash);
    const auto same = find_in(bucket, hash);
    Ghost& ghost = same != bucket.end() ? *same : oldest_in(bucket);
    ghost.hash = hash;
    ghost.noted = ++notes_;
    ghost.value = value;
  }

  // What was noted last, and forgets it.
  std::optional<Value> take(std::uint64_t hash) noexcept {
    if (buckets_.empty()) return std::nullopt;
    Bucket& bucket = bucket_in(buckets_, hash);
    const auto found = find_in(bucket, hash);
    if (found == bucket.end() || !known(*found)) return std::nullopt;
    const Value value = found->value;
    *found = {};
    return value;
  }

  std::size_t capacity() const noexcept { return capacity_; }
  // Keys known at this moment. Walks the table.
  std::size_t size() const noexcept {
    std::size_t count = 0;
    for (const Bucket& bucket : buckets_) {
      for (const Ghost& ghost : bucket) count += known(ghost) ? 1 : 0;
    }
    return count;
  }

 private:
  struct Ghost {
    std::uint64_t hash = 0;
    std::uint64_t noted = 0;  // count of notes when it was noted; 0: empty
    Value value{};
  };
  static constexpr std::size_t ways = 8;
  using Bucket = std::array<Ghost, ways>;

  static Bucket& bucket_in(std::vector<Bucket>& buckets, std::uint64_t hash) noexcept {
    return buckets[mix(hash) & (buckets.size() - 1)];
  }
  static auto find_in(Bucket& bucket, std::uint64_t hash) noexcept {
    return std::find_if(bucket.begin(), bucket.end(), [&](const Ghost& g) { return g.noted != 0 && g.hash == hash; });
  }
  static Ghost& oldest_in(Bucket& bucket) noexcept {
    return *std::min_element(bucket.begin(), bucket.end(),
                             [](const Ghost& a, const Ghost& b) { return a.noted < b.noted; });
  }
  bool known(const Ghost& ghost) const noexcept { return ghost.noted != 0 && notes_ - ghost.noted < capacity_; }

  void grow(std::size_t size) {
    std::vector<Bucket> larger(size);
    for (const Bucket& bucket : buckets_) {
      for (const Ghost& ghost : bucket) {
        if (!known(ghost)) continue;
        Ghost& oldest = oldest_in(bucket_in(larger, ghost.hash));
        if (oldest.noted < ghost.noted) oldest = ghost;
      }
    }
    buckets_.swap(larger);
  }

  std::vector<Bucket> buckets_;  // a power of two of them, or none
  std::size_t capacity_ = 0;
  std::uint64_t notes_ = 0;
};

// When one program was used, in little space, and what that says about its next use. Time is a count of uses, of all
// programs together. Intervals between uses are counted by their size in powers of two; a count of uses that decays by
// half in `half_life` stands beside them for programs of which few intervals are known.
// Invariant: the intervals counted are at most uses_: each use but the latest began one that has ended.
class UseHistory {
 public:
  // Used `times` since the latest use, evenly, the last time now. REQUIRES: times is not 0; time does not run
  // backwards.
  void used(std::uint64_t now, std::uint32_t times, double half_life) noexcept;

  // In which power of two the time since the latest use lies: prospect() changes only with it and with used().
  std::uint32_t age_class(std::uint64_t now) const noexcept;
  // Uses to be expected for each unit of time that the program is kept, where it is kept as long as is best and given
  // up when that has passed without a use.
  double prospect(std::uint32_t age_class, double half_life) const noexcept;

 private:
  static constexpr std::size_t sizes = 24;

  void halve() noexcept;

  std::array<std::uint8_t, sizes> intervals_{};  // [i]: of 2^i to 2^(i+1) - 1; the last: and longer
  std::uint8_t uses_ = 0;                        // halved together with intervals_ before it overflows
  float recent_uses_ = 0;                        // decaying; as of latest_
  std::uint64_t latest_ = 0;
};

// choose() examines every entry, and where more than 1,024 are held that many drawn at random.
// Invariants: held_ holds exactly the entries held, entries_[id].place is the place there; at most eight ghosts for
// each entry that was held at one time, or 256.
class CostPolicy final : public EvictionPolicy {
 public:
  explicit CostPolicy(std::uint64_t least_weight) : least_weight_(least_weight) {}

  void inserted(EntryId id, const EntryFacts& facts) override;
  void used(EntryId id, std::uint32_t times) noexcept override;
  void updated(EntryId id, const EntryFacts& facts) noexcept override;
  void erased(EntryId id) noexcept override;
  bool choose(const RoomNeeded& needed, const Evictable& evictable, std::vector<EntryId>& victims) override;

 private:
  struct Entry {
    EntryFacts facts;
    UseHistory history;
    std::size_t place = 0;
    std::uint32_t age_class = 0;  // to which `prospect` belongs
    double prospect = -1;         // negative: to be worked out
  };
  using Ranked = std::pair<double, EntryId>;  // by worth

  double half_life() const noexcept;
  double worth(EntryId id) noexcept;
  void rank_all(const RoomNeeded& needed, const Evictable& evictable);
  void rank_some(const RoomNeeded& needed, const Evictable& evictable);
  // Of those ranked, least first, until there is room; answers whether the newcomer was admitted as far as they went.
  bool take_least(const RoomNeeded& needed, ChosenVictims& chosen);

  const std::uint64_t least_weight_;
  std::vector<Entry> entries_;
  std::vector<EntryId> held_;
  GhostTable<UseHistory> ghosts_;
  std::vector<Ranked> ranked_;  // of one choose()
  std::uint64_t now_ = 0;       // uses told
  std::uint64_t draws_ = 0;
};

}  // namespace kiln
