// Statistics of runs: robust averages and a regression.
//
// RunAverage: a robust moving average of the log time of one arm's runs, with detection of changes of the device.
//
// A sample is clipped to three standard deviations, so that one disturbed run has little effect. Changes are detected
// by a two-sided CUSUM (Page, "Continuous inspection schemes", Biometrika 1954) on standardized residuals. After an
// alarm, the runs since the change get the weight that clipping removed, and the belief is as wide as the step until
// later runs narrow it; counts and variance remain. Thread-safety: a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace kiln::selector {

// Average: an exponentially weighted mean and variance, with the number of samples. The first samples have equal
// weight.
//
// Thread-safety: a value.
struct Average {
  double mean = 0;
  double variance = 0;
  std::uint64_t count = 0;

  // alpha: the weight of the newest sample once there are more than 1 ÷ alpha.
  void add(double value, double alpha) noexcept;
  // Returns the standard deviation of single samples. guess: the assumed deviation; it has the weight of one sample.
  double deviation(double guess) const noexcept;
};

// Combines two averages of one quantity.
Average merged(const Average& a, const Average& b) noexcept;

// One side of the CUSUM, with the runs since it was zero.
struct Excursion {
  double sum = 0;    // of standardized residuals beyond the slack
  double total = 0;  // of log times
  std::uint32_t runs = 0;
  double far_total = 0;  // of the runs among them that noise does not explain
  std::uint32_t far_runs = 0;
};

enum class Drift : std::uint8_t { invalid = 0, none, slower, faster };

struct RunAverage {
  // Assumed standard deviation of a device's runs of one bucket, with few samples.
  static constexpr double guessed_deviation = 0.3;

  Average log_ns;            // count: all samples
  std::uint64_t weight = 0;  // samples of the mean: few after an alarm
  double widening = 0;       // variance added by an alarm; halved by each run
  std::uint32_t alarms = 0;
  Excursion slower, faster;

  Drift add(double log_ns_of_run, double alpha) noexcept;
  // Returns the standard deviation of the mean. guess: as in Average::deviation().
  double mean_deviation(double alpha, double guess = guessed_deviation) const noexcept;

 private:
  void settle(const Excursion& change) noexcept;
};

// Regression of run times on FLOPs and bytes: predicts the time of a shape without runs from runs of other shapes.
//
// time = start + flops · a + bytes · b with no negative term, fitted by least squares of the relative error, so that
// short and long runs have equal weight; then corrected by the deviation of the nearest shapes. Thread-safety: pure.
// Ownership: values.

struct RunPoint {
  double flops = 0;
  double bytes = 0;
  double log_ns = 0;
  bool same_family = false;
};

struct Prediction {
  double log_ns = 0;
  double log_deviation = 0;  // from the residuals of the fit and the distance of the points
  std::size_t shapes = 0;    // used
};

// nullopt: no points.
std::optional<Prediction> predict(std::span<const RunPoint> points, double flops, double bytes);

}  // namespace kiln::selector
