#include "selector/model/average.hpp"

#include <algorithm>
#include <cmath>

namespace kiln::selector {

void Average::add(double value, double alpha) noexcept {
  ++count;
  const double weight = std::max(alpha, 1.0 / static_cast<double>(count));
  const double step = value - mean;
  mean += weight * step;
  variance = (1 - weight) * (variance + weight * step * step);
}

double Average::mean_deviation(double alpha, double guess) const noexcept {
  if (count == 0) return guess;
  const double samples = static_cast<double>(count);
  // The guess counts as one sample: a single run has no variance, which does not make it certain.
  const double pooled = (variance * samples + guess * guess) / (samples + 1);
  const double remembered = std::min(samples, (2 - alpha) / alpha);
  return std::sqrt(pooled / remembered);
}

}  // namespace kiln::selector
