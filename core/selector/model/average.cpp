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

double Average::deviation(double guess) const noexcept {
  const double samples = static_cast<double>(count);
  return std::sqrt((variance * samples + guess * guess) / (samples + 1));
}

Average merged(const Average& a, const Average& b) noexcept {
  if (a.count == 0) return b;
  if (b.count == 0) return a;
  const double total = static_cast<double>(a.count) + static_cast<double>(b.count);
  const double share = static_cast<double>(b.count) / total;
  const double step = b.mean - a.mean;
  return {a.mean + share * step, (1 - share) * a.variance + share * b.variance + share * (1 - share) * step * step,
          a.count + b.count};
}

}  // namespace kiln::selector
