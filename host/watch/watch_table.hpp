// The table of `kiln run --watch`: what a run has done so far, and how fast it is now, as lines for a terminal.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include "progress/metrics_reading.hpp"
#include "progress/run_course.hpp"
#include "report/run_report.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace kiln::host {

// before, now: what the runtime said, so many seconds apart; rates are of that time.
struct WatchedFigures {
  const MetricsReading& before;
  const MetricsReading& now;
  double seconds = 0;
};

std::vector<std::string> watch_lines(const RunCourse& run, const WatchedFigures& figures, std::size_t width,
                                     Colour colour);

}  // namespace kiln::host
