// GhostTable: what is still known about keys whose programs left, by the hash of the key.
//
// Thread-safety: none. Ownership: a value. Bounded: a key is known until `capacity` others were noted after it, or
// earlier where its bucket is full; the oldest of a bucket makes place. O(1); reserve() O(1) on average.
// Invariant: a hash stands in the table at most once.
#pragma once

#include "cache/policy/parts/mix.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace kiln {

template <class Value>
class GhostTable {
 public:
  // Room for at least so many keys; it never shrinks. std::bad_alloc leaves the table as it was.
  void reserve(std::size_t keys) {
    if (keys <= capacity_) return;
    // Twice as many places as keys: of eight places four are taken on average, so that full buckets are rare.
    std::vector<Bucket> larger(std::bit_ceil(2 * keys / ways + 1));
    for (const Bucket& bucket : buckets_) {
      for (const Ghost& ghost : bucket) {
        if (!known(ghost)) continue;
        Ghost& oldest = oldest_in(bucket_in(larger, ghost.hash));
        if (oldest.noted < ghost.noted) oldest = ghost;
      }
    }
    buckets_.swap(larger);
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

  std::vector<Bucket> buckets_;  // a power of two of them, or none
  std::size_t capacity_ = 0;
  std::uint64_t notes_ = 0;
};

}  // namespace kiln
