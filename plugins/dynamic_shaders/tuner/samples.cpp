#include "dynamic_shaders/tuner/samples.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace kiln::dynamic_shaders {

Interval interval_of(std::span<const std::uint64_t> samples) {
  std::vector<std::uint64_t> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t count = sorted.size();
  const std::uint64_t median =
      count % 2 == 1 ? sorted[count / 2] : sorted[count / 2 - 1] + (sorted[count / 2] - sorted[count / 2 - 1]) / 2;
  // Samples left out at either end: the most for which P(no more than that many are below the median) <= 2.5 %.
  std::size_t out = 0;
  double term = std::pow(0.5, static_cast<double>(count)), below = term;
  while (2 * (out + 1) < count) {
    term *= static_cast<double>(count - out) / static_cast<double>(out + 1);
    below += term;
    if (below > 0.025) break;
    ++out;
  }
  return {sorted[out], median, sorted[count - 1 - out]};
}

bool slower(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  constexpr double one = 1e6;
  std::vector<std::uint64_t> ratios;
  for (std::size_t i = 0; i < a.size(); ++i)
    ratios.push_back(static_cast<std::uint64_t>(one * static_cast<double>(a[i]) / static_cast<double>(b[i])));
  return static_cast<double>(interval_of(ratios).lower) > one;
}

}  // namespace kiln::dynamic_shaders
