// Two bench files beside each other: what is a regression, and what is noise.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include "verbs/bench_file.hpp"

#include <optional>
#include <string>
#include <vector>

namespace kiln::host {

enum class Change {
  invalid = 0,
  same,  // within the noise, or below the margin
  better,
  worse,
  missing,       // in the first file only
  added,         // in the second file only
  incomparable,  // a time without a peer, on two machines; a figure whose unit or direction changed
};

enum class Compared { invalid = 0, everything, counts };

struct FigureChange {
  Change change = Change::invalid;
  std::string figure;  // its identity
  std::string before, after;
  std::string of;                // what was compared: "ratio to NAME", "ns"
  std::optional<double> factor;  // how many times better it became; below 1: worse; nothing: there is no such factor
};

// A figure with the same peer in both is compared by its ratio, which leaves the machine out; others by Kiln's own
// value, on one processor model only. It has changed where the two ranges of quartiles do not overlap and the medians
// differ by more than `margin` (0.1: a tenth). Counts are compared exactly: any difference is a change. With
// Compared::counts nothing else is looked at. An output that has become wrong is worse, whatever the figure.
std::vector<FigureChange> compare_bench(const BenchFile& before, const BenchFile& after, Compared what, double margin);

// Whether a change is one that `kiln bench compare` ends with 1 for. Of counts also one for the better, and what was
// added: the file that is compared with has then to be made anew.
bool is_regression(const FigureChange& change, Compared what) noexcept;

// Adds one more pass over all programs to `figure`. Noise of a machine lasts longer than the rounds of one program, so
// a figure has several passes: the median is the middle of both (geometric if both are above 0), and the quartiles
// cover both. A pass without the peer leaves the peer and the ratio as they were. REQUIRES: both have one identity.
void merge_passes(BenchFigure& figure, const BenchFigure& again);

}  // namespace kiln::host
