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

// Where nothing was measured that variant serves whose first `in_the_end` runs, building included, are expected to be
// done soonest, among those that are ahead of the plain one after `soon`.
inline constexpr double soon_runs = 100, in_the_end_runs = 1000;

}  // namespace kiln::dynamic_shaders
