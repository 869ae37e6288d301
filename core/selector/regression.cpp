#include "selector/regression.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace kiln::selector {
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

// Every subset of the terms is tried: with three it is as cheap as an active-set method, and exact.
std::optional<Fit> fit(std::span<const RunPoint> points) {
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
  if (best.mask == 0) return std::nullopt;
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
  const auto fitted = points.size() == 1 ? std::nullopt : fit(points);
  if (!fitted) {
    return scaled(*std::ranges::min_element(
                      points, {},
                      [&](const RunPoint& point) { return octaves(flops, point.flops) + (point.same_family ? 0 : 2); }),
                  flops);
  }
  double correction = 0, weights = 1.5, nearest = std::numeric_limits<double>::max();
  bool any_of_family = false;
  for (const RunPoint& point : points) {
    const double off = point.log_ns - fitted->log_ns(point.flops, point.bytes);
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
      std::sqrt((fitted->squares + guess_weight * guessed_error * guessed_error) / (count + guess_weight));
  return Prediction{
      fitted->log_ns(flops, bytes) + correction / weights,
      std::hypot(error, octave_deviation * std::max(nearest - 1, 0.0) / 2, any_of_family ? 0 : family_deviation),
      points.size()};
}

}  // namespace kiln::selector
