// Regression of run times on FLOPs and bytes: what runs of other shapes let expect of one that was never run.
//
// time = start + flops · a + bytes · b with no negative term, fitted by least squares of the relative error (so that a
// short run counts as much as a long one), then corrected by what the nearest shapes deviate from the fit.
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
  double log_deviation = 0;  // by how badly the fit meets its own points, and how far off they lie
  std::size_t shapes = 0;    // that it rests on
};

// nullopt: there is no point.
std::optional<Prediction> predict(std::span<const RunPoint> points, double flops, double bytes);

}  // namespace kiln::selector
