// A line about tuning that is under way: how many variants were met, the best so far, and the time left.
//
// Thread-safety: a pure function. Ownership: values.
#pragma once

#include <kiln/tuning.hpp>

#include <string>

namespace kiln::host {

// "res3_3x3: 12 of 64 [####----------------] best 1.203 ms, 14 s left". Where all were met the best of them meet again.
std::string tuning_progress_text(const std::string& job, const TuneProgress& progress);

}  // namespace kiln::host
