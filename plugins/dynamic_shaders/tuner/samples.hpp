// What a handful of times says: the median, and an interval that holds the true median.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <cstdint>
#include <span>

namespace kiln::dynamic_shaders {

struct Interval {
  std::uint64_t lower = 0, median = 0, upper = 0;
  bool overlaps(const Interval& other) const noexcept { return lower <= other.upper && other.lower <= upper; }
};

// The interval between order statistics that holds the median with at least 95 % confidence, whatever the times'
// distribution (the count of samples below the median is binomial with p = 1/2); with fewer than six samples, which
// cannot give that, from the least to the greatest. REQUIRES: not empty.
Interval interval_of(std::span<const std::uint64_t> samples);

}  // namespace kiln::dynamic_shaders
