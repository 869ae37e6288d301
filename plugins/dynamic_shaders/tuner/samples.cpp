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

std::vector<std::uint64_t> ratios_of(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  std::vector<std::uint64_t> ratios;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double ratio = static_cast<double>(a[i]) / static_cast<double>(b[i]);
    ratios.push_back(static_cast<std::uint64_t>(one_in_millionths * ratio));
  }
  return ratios;
}

double spread_of(std::span<const std::uint64_t> samples) {
  std::vector<std::uint64_t> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t quarter = sorted.size() / 4;
  const double width = static_cast<double>(sorted[sorted.size() - 1 - quarter]) - static_cast<double>(sorted[quarter]);
  const auto median = static_cast<double>(interval_of(samples).median);
  return sorted.size() < 4 || median == 0 ? 0 : width / median;
}

bool slower(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  return static_cast<double>(interval_of(ratios_of(a, b)).lower) > one_in_millionths;
}

}  // namespace kiln::dynamic_shaders
