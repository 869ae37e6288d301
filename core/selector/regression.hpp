// Regression of run times on FLOPs and bytes: predicts the time of a shape without runs from runs of other shapes.
//
// time = start + flops · a + bytes · b with no negative term, fitted by least squares of the relative error, so that short
// and long runs have equal weight; then corrected by the deviation of the nearest shapes.
// Thread-safety: pure. Ownership: values.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace kiln::selector {

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
