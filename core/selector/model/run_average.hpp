// RunAverage: what is believed of the time of one arm's runs: a robust moving average of log time that notices when the
// device has changed.
//
// Robust: a sample is clipped to three standard deviations before it moves the average, so that one disturbed run costs
// little. Drift: a two-sided CUSUM (Page, "Continuous inspection schemes", Biometrika 1954) on standardized residuals.
// An alarm widens and does not forget: the runs since the change get the weight that clipping had held back, and the
// belief is as wide as the step, until later runs narrow it; counts and spread stay.
// Thread-safety: a value.
#pragma once

#include "selector/model/average.hpp"

#include <cstdint>

namespace kiln::selector {

// One side of the CUSUM with the runs since it left zero: those that the change, if it is one, began with.
struct Excursion {
  double sum = 0;    // of standardized residuals beyond the slack
  double total = 0;  // of log times
  std::uint32_t runs = 0;
  double far_total = 0;  // of those runs alone that noise does not explain
  std::uint32_t far_runs = 0;
};

enum class Drift : std::uint8_t { invalid = 0, none, slower, faster };

struct RunAverage {
  // The assumed spread of one device's runs of one bucket, until there are enough to know.
  static constexpr double guessed_deviation = 0.3;

  Average log_ns;            // count: all runs that were learned from
  std::uint64_t weight = 0;  // runs that the mean rests on: few after an alarm
  double widening = 0;       // variance that an alarm added to the belief; halves with every run
  std::uint32_t alarms = 0;
  Excursion slower, faster;

  Drift add(double log_ns_of_run, double alpha) noexcept;
  // The standard deviation of the mean. `guess`: of single runs, until there are enough to know.
  double mean_deviation(double alpha, double guess = guessed_deviation) const noexcept;

 private:
  void settle(const Excursion& change) noexcept;
};

}  // namespace kiln::selector
