// The table of `kiln run --watch` as lines: totals and current rates.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include "progress/metrics_reading.hpp"
#include "progress/run_progress.hpp"
#include "report/run_report.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace kiln::host {

// before, now: two readings of the metrics; seconds: the time between them, for rates.
struct WatchedFigures {
  const MetricsReading& before;
  const MetricsReading& now;
  double seconds = 0;
};

std::vector<std::string> watch_lines(const RunCourse& run, const WatchedFigures& figures, std::size_t width,
                                     Colour colour);

}  // namespace kiln::host
