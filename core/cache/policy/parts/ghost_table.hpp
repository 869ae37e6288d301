// GhostTable: what is still known about keys whose programs left, by the hash of the key.
//
// Thread-safety: none. Ownership: a value. Bounded: a key is known until `capacity` others were noted after it, or
// earlier where its bucket is full; the oldest of a bucket makes place. O(1); reserve() O(1) on average.
// Invariant: a hash stands in the table at most once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace kiln {

class GhostTable {
 public:
  // Room for at least so many keys; it never shrinks. std::bad_alloc leaves the table as it was.
  void reserve(std::size_t keys);

  void note(std::uint64_t hash, double value) noexcept;
  // What was noted last, and forgets it.
  std::optional<double> take(std::uint64_t hash) noexcept;

  std::size_t capacity() const noexcept { return capacity_; }
  // Keys known at this moment. Walks the table.
  std::size_t size() const noexcept;

 private:
  struct Ghost {
    std::uint64_t hash = 0;
    std::uint64_t noted = 0;  // count of notes when it was noted; 0: empty
    double value = 0;
  };
  static constexpr std::size_t ways = 8;
  using Bucket = std::array<Ghost, ways>;

  static Bucket& bucket_in(std::vector<Bucket>& buckets, std::uint64_t hash) noexcept;
  bool known(const Ghost& ghost) const noexcept { return ghost.noted != 0 && notes_ - ghost.noted < capacity_; }

  std::vector<Bucket> buckets_;  // a power of two of them, or none
  std::size_t capacity_ = 0;
  std::uint64_t notes_ = 0;
};

}  // namespace kiln
