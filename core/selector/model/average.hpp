// Average: an exponentially weighted mean and variance, with the count of what went in.
//
// Thread-safety: a value. The first samples count alike, so that one early sample does not weigh for ever.
#pragma once

#include <cstdint>

namespace kiln::selector {

struct Average {
  double mean = 0;
  double variance = 0;
  std::uint64_t count = 0;

  // alpha: the weight of the newest sample once there are more than 1 ÷ alpha.
  void add(double value, double alpha) noexcept;
  // The spread of single samples. `guess`: the standard deviation to assume where there are too few samples to know;
  // it counts as one sample.
  double deviation(double guess) const noexcept;
};

// Two averages of one quantity, as if the samples of both had been seen by one.
Average merged(const Average& a, const Average& b) noexcept;

}  // namespace kiln::selector
