// Candidate: a point of a space of variants, and the terms on which one serves where nothing was measured.
//
// Thread-safety: values. Ownership: values.
#pragma once

#include <string>

namespace kiln::dynamic_shaders {

struct Candidate {
  std::string variant;
  double predicted = 0;  // cycles of a run, comparable within one space
  double build = 0;      // cycles
};

// Where nothing was measured that variant serves whose first so many runs, building included, are expected to be done
// soonest. A program is built once and kept, so a process that ends early still leaves it to the next; fewer runs kept
// the plain kernel on small layers, where it takes five to eight times as long as what a thousand runs pay for.
inline constexpr double paying_runs = 1000;

}  // namespace kiln::dynamic_shaders
