#include "verbs/bench_compare.hpp"

#include "verbs/bench_file.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace kiln::host {
namespace {

std::map<std::string, const BenchFigure*> by_identity(const BenchFile& file, Compared what) {
  std::map<std::string, const BenchFigure*> all;
  for (const MeasuredArea& area : file.areas) {
    for (const BenchFigure& figure : area.figures) {
      if (what == Compared::everything || figure.stable) all[figure.identity()] = &figure;
    }
  }
  return all;
}

// How many times better `after` is; counts of 0 included.
double improvement(double before, double after, bool more_is_better) {
  const double better = more_is_better ? after : before, worse = more_is_better ? before : after;
  if (better == worse) return 1;
  constexpr double bound = 1e6;
  return worse == 0 ? bound : std::clamp(better / worse, 1 / bound, bound);
}

bool apart(const Spread& one, const Spread& other) { return one.high < other.low || other.high < one.low; }

Change change_of(const Spread& before, const Spread& after, double factor, double margin) {
  if (!apart(before, after) || (factor < 1 + margin && factor > 1 / (1 + margin))) return Change::same;
  return factor > 1 ? Change::better : Change::worse;
}

// Kiln's own value, or the ratio to the peer.
std::string value_text(const BenchFigure& figure, bool by_ratio = false) {
  return (by_ratio ? spread_text(figure.ratio, "x") : spread_text(figure.kiln, figure.unit)) +
         (figure.verified == false ? ", WRONG" : "");
}

FigureChange compare_figures(const BenchFigure& before, const BenchFigure& after, bool same_machine, double margin) {
  FigureChange change;
  change.figure = after.identity();
  const bool by_ratio = !after.stable && before.peer_name && before.peer_name == after.peer_name;
  const Spread &old = by_ratio ? before.ratio : before.kiln, &now = by_ratio ? after.ratio : after.kiln;
  change.of = by_ratio ? "ratio to " + *after.peer_name : after.name;
  change.before = value_text(before, by_ratio);
  change.after = value_text(after, by_ratio);
  const bool alike = before.unit == after.unit && before.more_is_better == after.more_is_better;
  if (after.verified == false && before.verified != false) {
    change.change = Change::worse;
    return change;
  }
  if (!alike || (!after.stable && !by_ratio && !same_machine)) {
    change.change = Change::incomparable;
    return change;
  }
  const double factor = improvement(old.median, now.median, by_ratio || after.more_is_better);
  change.factor = factor;
  if (after.stable) {
    change.change = old.median == now.median && old.low == now.low && old.high == now.high ? Change::same
                    : factor > 1                                                           ? Change::better
                                                                                           : Change::worse;
  } else {
    change.change = change_of(old, now, factor, margin);
  }
  return change;
}

}  // namespace

std::vector<FigureChange> compare_bench(const BenchFile& before, const BenchFile& after, Compared what, double margin) {
  const auto old = by_identity(before, what), now = by_identity(after, what);
  const bool same_machine = before.machine.cpu == after.machine.cpu && before.machine.cores == after.machine.cores;
  std::vector<FigureChange> changes;
  for (const auto& [identity, figure] : old) {
    const auto at = now.find(identity);
    if (at != now.end()) {
      changes.push_back(compare_figures(*figure, *at->second, same_machine, margin));
    } else {
      changes.push_back({Change::missing, identity, value_text(*figure), "–", figure->name, {}});
    }
  }
  for (const auto& [identity, figure] : now) {
    if (old.contains(identity)) continue;
    changes.push_back({Change::added, identity, "–", value_text(*figure), figure->name, {}});
  }
  return changes;
}

bool is_regression(const FigureChange& change, Compared what) noexcept {
  switch (change.change) {
    case Change::worse:
      return true;
    case Change::better:
    case Change::missing:
    case Change::added:
    case Change::incomparable:
      return what == Compared::counts;
    case Change::invalid:
    case Change::same:
      break;
  }
  return false;
}

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

void merge_passes(BenchFigure& figure, const BenchFigure& again) {
  merge(figure.kiln, again.kiln, figure.passes);
  if (figure.peer_name && again.peer_name) {
    merge(figure.peer, again.peer, figure.passes);
    merge(figure.ratio, again.ratio, figure.passes);
  }
  ++figure.passes;
  if (figure.verified) figure.verified = *figure.verified && again.verified.value_or(false);
  if (!figure.target) return;
  BenchTarget& target = *figure.target;
  const double reached = target.text.ends_with('x') ? figure.ratio.median : figure.kiln.median;
  target.met = target.text.starts_with(">=") ? reached >= target.value : reached <= target.value;
}

}  // namespace kiln::host
