#include "verbs/bench/bench_passes.hpp"

#include <algorithm>
#include <cmath>

namespace kiln::host {
namespace {

// Where `passes` values have the middle a already.
double middle(double a, double b, unsigned passes) {
  const double share = 1.0 / (passes + 1);
  if (a > 0 && b > 0) return std::exp(std::log(a) * (1 - share) + std::log(b) * share);
  return a * (1 - share) + b * share;
}

void merge(Spread& spread, const Spread& again, unsigned passes) {
  spread.low = std::min(spread.low, again.low);
  spread.high = std::max(spread.high, again.high);
  spread.median = std::clamp(middle(spread.median, again.median, passes), spread.low, spread.high);
  spread.samples += again.samples;
}

}  // namespace

void merge_passes(BenchFigure& figure, const BenchFigure& again, unsigned passes) {
  merge(figure.kiln, again.kiln, passes);
  if (figure.peer_name) {
    merge(figure.peer, again.peer, passes);
    merge(figure.ratio, again.ratio, passes);
  }
  if (figure.verified) figure.verified = *figure.verified && again.verified.value_or(false);
  if (!figure.target) return;
  BenchTarget& target = *figure.target;
  const double reached = target.text.ends_with('x') ? figure.ratio.median : figure.kiln.median;
  target.met = target.text.starts_with(">=") ? reached >= target.value : reached <= target.value;
}

}  // namespace kiln::host
