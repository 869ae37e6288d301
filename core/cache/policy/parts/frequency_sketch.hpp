// FrequencySketch: about how often each of many keys was used lately, with counters up to 15 (count-min).
//
// Thread-safety: none. Ownership: a value. The estimate is never below the true count while nothing was halved, 15 at
// most; every counter is halved after ten uses for each key that was reserved, so old use decays. O(1) on average.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kiln {

class FrequencySketch {
 public:
  static constexpr std::uint32_t most = 15;

  // Room to tell at least so many keys apart; it never shrinks, and keeps what it knows. std::bad_alloc leaves it as it
  // was.
  void reserve(std::size_t keys);

  void add(std::uint64_t hash, std::uint32_t times) noexcept;  // REQUIRES: something was reserved
  std::uint32_t estimate(std::uint64_t hash) const noexcept;

 private:
  static constexpr std::size_t rows = 4;
  std::array<std::size_t, rows> places(std::uint64_t hash) const noexcept;
  void halve() noexcept;

  std::vector<std::uint8_t> counters_;  // row after row of width_, each at most `most`
  std::size_t width_ = 0;               // a power of two
  std::size_t keys_ = 0;
  std::uint64_t added_ = 0;  // since the last halving
};

}  // namespace kiln
