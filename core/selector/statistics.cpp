#include "selector/statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

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
  const double total = static_cast<double>(a.count) + static_cast<double>(b.count);
  const double share = static_cast<double>(b.count) / total;
  const double step = b.mean - a.mean;
  return {a.mean + share * step, (1 - share) * a.variance + share * b.variance + share * (1 - share) * step * step,
          a.count + b.count};
}

namespace {

constexpr std::size_t terms = 3;  // start, FLOPs, bytes
constexpr std::size_t enough_of_family = 5;

// Standard deviations of log time: of a fit's error before it is known, what an octave of distance adds, and what
// another family adds.
constexpr double guessed_error = 0.5;
constexpr double guess_weight = 2;  // points
constexpr double octave_deviation = 0.25;
constexpr double family_deviation = 0.7;
constexpr double scaling_deviation = 0.3;
constexpr double most_error = 3;  // of a point's log time: it is wrong, no matter how much

using Row = std::array<double, terms>;

double octaves(double a, double b) { return std::abs(std::log2(a / b)); }

// The solution of A x = y over the terms in `mask`, zero elsewhere; nullopt: singular.
std::optional<Row> solve(std::array<Row, terms> a, Row y, unsigned mask) {
  std::array<std::size_t, terms> used{};
  std::size_t count = 0;
  for (std::size_t i = 0; i < terms; ++i) {
    if ((mask >> i & 1u) != 0) used[count++] = i;
  }
  for (std::size_t k = 0; k < count; ++k) {
    std::size_t pivot = k;
    for (std::size_t r = k + 1; r < count; ++r) {
      if (std::abs(a[used[r]][used[k]]) > std::abs(a[used[pivot]][used[k]])) pivot = r;
    }
    std::swap(a[used[k]], a[used[pivot]]);
    std::swap(y[used[k]], y[used[pivot]]);
    if (std::abs(a[used[k]][used[k]]) < 1e-9) return std::nullopt;
    for (std::size_t r = k + 1; r < count; ++r) {
      const double factor = a[used[r]][used[k]] / a[used[k]][used[k]];
      for (std::size_t c = k; c < count; ++c) a[used[r]][used[c]] -= factor * a[used[k]][used[c]];
      y[used[r]] -= factor * y[used[k]];
    }
  }
  Row x{};
  for (std::size_t k = count; k-- > 0;) {
    double rest = y[used[k]];
    for (std::size_t c = k + 1; c < count; ++c) rest -= a[used[k]][used[c]] * x[used[c]];
    x[used[k]] = rest / a[used[k]][used[k]];
  }
  return x;
}

struct Fit {
  Row coefficients{};  // of the scaled terms
  Row scale{};
  unsigned mask = 0;   // terms that are not zero
  double squares = 0;  // of the errors in log time, each of a point that the rest alone lets expect

  double log_ns(double flops, double bytes) const {
    return std::log(coefficients[0] + coefficients[1] * flops * scale[1] + coefficients[2] * bytes * scale[2]);
  }
};

// What a fit to the other points misses each point by. The points that made a fit flatter it: few of them are met well
// by chance, and then say the less of any other.
double squares_left_out(const std::array<Row, terms>& a, const Row& y, const std::vector<Row>& rows, unsigned mask) {
  double squares = 0;
  for (const Row& row : rows) {
    std::array<Row, terms> others = a;
    Row target = y;
    for (std::size_t i = 0; i < terms; ++i) {
      for (std::size_t j = 0; j < terms; ++j) others[i][j] -= row[i] * row[j];
      target[i] -= row[i];
    }
    const auto x = solve(others, target, mask);
    const double ratio = x ? row[0] * (*x)[0] + row[1] * (*x)[1] + row[2] * (*x)[2] : 0;  // expected by true
    const double off = std::log(std::clamp(ratio, std::exp(-most_error), std::exp(most_error)));
    squares += off * off;
  }
  return squares;
}

// Every subset of the terms is tried: with three it is as cheap as an active-set method, and exact. A start alone
// always fits. REQUIRES: not empty.
Fit fit(std::span<const RunPoint> points) {
  Fit best;
  double mean_flops = 0, mean_bytes = 0;
  for (const RunPoint& point : points) mean_flops += point.flops, mean_bytes += point.bytes;
  const double count = static_cast<double>(points.size());
  best.scale = {1, count / mean_flops, mean_bytes > 0 ? count / mean_bytes : 0};
  std::array<Row, terms> a{};
  Row y{};
  std::vector<Row> rows;
  double least_log = std::numeric_limits<double>::max();
  for (const RunPoint& point : points) least_log = std::min(least_log, point.log_ns);
  for (const RunPoint& point : points) {
    const double time = std::exp(point.log_ns - least_log);
    const Row row{1 / time, point.flops * best.scale[1] / time, point.bytes * best.scale[2] / time};
    for (std::size_t i = 0; i < terms; ++i) {
      for (std::size_t j = 0; j < terms; ++j) a[i][j] += row[i] * row[j];
      y[i] += row[i];
    }
    rows.push_back(row);
  }
  double least = std::numeric_limits<double>::max();
  for (unsigned mask = 1; mask < (1u << terms); ++mask) {
    int used = 0;
    for (std::size_t i = 0; i < terms; ++i) used += static_cast<int>(mask >> i & 1u);
    if (static_cast<std::size_t>(used) > points.size()) continue;
    const auto x = solve(a, y, mask);
    if (!x || std::ranges::any_of(*x, [](double term) { return term < 0; })) continue;
    double error = 0;
    for (const Row& row : rows) {
      const double off = row[0] * (*x)[0] + row[1] * (*x)[1] + row[2] * (*x)[2] - 1;
      error += off * off;
    }
    if (error >= least * 0.999) continue;  // a term more has to earn its place
    least = error;
    best.coefficients = *x;
    best.mask = mask;
  }
  best.squares = squares_left_out(a, y, rows, best.mask);
  for (double& coefficient : best.coefficients) coefficient *= std::exp(least_log);
  return best;
}

// A single point says nothing of start and slope: its rate is taken for all sizes.
Prediction scaled(const RunPoint& point, double flops) {
  const double deviation = std::hypot(scaling_deviation, octave_deviation * octaves(flops, point.flops),
                                      point.same_family ? 0 : family_deviation);
  return {point.log_ns + std::log(flops / point.flops), deviation, 1};
}

}  // namespace

std::optional<Prediction> predict(std::span<const RunPoint> all, double flops, double bytes) {
  std::vector<RunPoint> points;
  for (const RunPoint& point : all) {
    if (point.same_family) points.push_back(point);
  }
  const bool family_alone = points.size() >= enough_of_family;
  if (!family_alone) points.assign(all.begin(), all.end());
  if (points.empty()) return std::nullopt;
  if (points.size() == 1) return scaled(points.front(), flops);
  const Fit fitted = fit(points);
  double correction = 0, weights = 1.5, nearest = std::numeric_limits<double>::max();
  bool any_of_family = false;
  for (const RunPoint& point : points) {
    const double off = point.log_ns - fitted.log_ns(point.flops, point.bytes);
    const double byte_octaves = bytes > 0 && point.bytes > 0 ? octaves(bytes, point.bytes) : 0;
    const double distance = std::hypot(octaves(flops, point.flops), byte_octaves) + (point.same_family ? 0 : 2);
    const double weight = std::exp(-distance * distance);
    correction += weight * off;
    weights += weight;
    nearest = std::min(nearest, octaves(flops, point.flops));
    any_of_family = any_of_family || point.same_family;
  }
  const double count = static_cast<double>(points.size());
  const double error =
      std::sqrt((fitted.squares + guess_weight * guessed_error * guessed_error) / (count + guess_weight));
  return Prediction{
      fitted.log_ns(flops, bytes) + correction / weights,
      std::hypot(error, octave_deviation * std::max(nearest - 1, 0.0) / 2, any_of_family ? 0 : family_deviation),
      points.size()};
}

}  // namespace kiln::selector
