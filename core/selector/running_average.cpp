#include "selector/running_average.hpp"

#include <algorithm>
#include <cmath>

namespace kiln::selector {
namespace {

constexpr std::uint64_t enough_to_judge = 4;  // runs
constexpr double least_deviation = 0.02;      // clocks and schedulers are no steadier
constexpr double clip_mean = 3;               // standard deviations
constexpr double clip_cusum = 4;
// A shift of two deviations is what it looks for; in between, the sum of Gaussian residuals returns to zero. The mean
// time between false alarms grows as exp(2 · slack · threshold): 5e8 runs.
constexpr double slack = 1;
constexpr double threshold = 10;
constexpr double suspicious_sum = 3;
constexpr double suspicious_residual = 2.5;

void follow(Excursion& side, double residual, double log_ns) noexcept {
  side.sum += residual - slack;
  if (side.sum <= 0) {
    side = {};
    return;
  }
  side.total += log_ns;
  ++side.runs;
  if (residual <= suspicious_residual) return;
  side.far_total += log_ns;
  ++side.far_runs;
}

}  // namespace

Drift RunAverage::add(double value, double alpha) noexcept {
  double step = value - log_ns.mean;
  double residual = 0;  // standardized
  Drift drift = Drift::none;
  if (log_ns.count >= enough_to_judge) {
    const double deviation = std::max(log_ns.deviation(guessed_deviation), least_deviation);
    residual = std::clamp(step / deviation, -clip_cusum, clip_cusum);
    follow(slower, residual, value);
    follow(faster, -residual, value);
    step = std::clamp(step, -clip_mean * deviation, clip_mean * deviation);
    if (slower.sum > threshold) drift = Drift::slower;
    if (faster.sum > threshold) drift = Drift::faster;
  }
  ++log_ns.count;
  ++weight;
  widening /= 2;
  if (drift != Drift::none) {
    settle(drift == Drift::slower ? slower : faster);
    return drift;
  }
  // What may be the beginning of a change is held back until it has shown itself as one, or as noise.
  if (std::max(slower.sum, faster.sum) > suspicious_sum && std::abs(residual) > suspicious_residual) return drift;
  const double share = std::max(alpha, 1.0 / static_cast<double>(weight));
  log_ns.mean += share * step;
  // The spread is the device's, which few runs after an alarm do not know better than the many before.
  const double spread_share = std::max(alpha, 1.0 / static_cast<double>(log_ns.count));
  log_ns.variance = (1 - spread_share) * (log_ns.variance + spread_share * step * step);
  return drift;
}

void RunAverage::settle(const Excursion& change) noexcept {
  const bool sudden = change.far_runs >= 2;
  const double mean = sudden ? change.far_total / change.far_runs : change.total / change.runs;
  const double step = mean - log_ns.mean;
  widening = step * step / 4;
  log_ns.mean = mean;
  weight = sudden ? change.far_runs : change.runs;
  ++alarms;
  slower = faster = {};
}

double RunAverage::mean_deviation(double alpha, double guess) const noexcept {
  if (weight == 0) return guess;
  const double remembered = std::min(static_cast<double>(weight), (2 - alpha) / alpha);
  const double spread = log_ns.deviation(guess);
  return std::sqrt(spread * spread / remembered + widening);
}

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
