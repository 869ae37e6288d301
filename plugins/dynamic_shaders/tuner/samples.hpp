// What a handful of times says: the median, an interval that holds the true median, and which of two is slower.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kiln::dynamic_shaders {

struct Interval {
  std::uint64_t lower = 0, median = 0, upper = 0;
  bool overlaps(const Interval& other) const noexcept { return lower <= other.upper && other.lower <= upper; }
};

// The interval between order statistics that holds the median with at least 95 % confidence, whatever the times'
// distribution (the count of samples below the median is binomial with p = 1/2); with fewer than six samples, which
// cannot give that, from the least to the greatest. REQUIRES: not empty.
Interval interval_of(std::span<const std::uint64_t> samples);

// a ÷ b, round by round, in millionths. REQUIRES: as many rounds of a as of b, at least one, none of b zero.
std::vector<std::uint64_t> ratios_of(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b);
inline constexpr double one_in_millionths = 1e6;

// The middle half of the samples, its width as a share of the median: 0 of less than four. REQUIRES: not empty.
double spread_of(std::span<const std::uint64_t> samples);

// Of two that met in the same rounds: whether a's median ratio to b is above 1 with that confidence. What disturbs a
// round disturbs both, so ratios of rounds tell apart what the intervals of their times do not. With fewer than six
// rounds: whether a was slower in each. REQUIRES: as many rounds of a as of b, at least one, none of b zero.
bool slower(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b);

}  // namespace kiln::dynamic_shaders
