// merge_passes: one figure of what several passes over all programs measured, minutes apart.
//
// A machine's moods outlast the rounds of one program, so rounds alone tell a spread that is too narrow. Of two passes
// the median is the middle of both (geometric, where both are above 0), and quartiles reach as far as either's.
// Thread-safety: a pure function. Ownership: values.
#pragma once

#include "verbs/bench/bench_file.hpp"

namespace kiln::host {

// Takes `again` into `figure`, which holds `passes` of them already. REQUIRES: both are of one identity.
void merge_passes(BenchFigure& figure, const BenchFigure& again, unsigned passes);

}  // namespace kiln::host
