#include "selector/exploration.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace kiln::selector {
namespace {

constexpr double clearly_slower = 2;

// The least cost that rests on runs; infinite where there is none.
double best_of(std::span<const Prospect> prospects) {
  double best = std::numeric_limits<double>::infinity();
  for (const Prospect& prospect : prospects) {
    if (prospect.run.evidence != Evidence::roof) best = std::min(best, prospect.cost_ns());
  }
  return best;
}

}  // namespace

bool Exploration::wants_look(const Prospect& prospect, double best_ns) const {
  if (prospect.looks >= most_looks || prospect.run.runs >= most_looks) return false;
  if (!prospect.run.known()) return true;
  const double cost = prospect.cost_ns();
  if (prospect.run.evidence == Evidence::own) return cost <= clearly_slower * best_ns;
  if (cost <= hopeless * best_ns) return true;
  // The device's own runs of shapes that scale soundly to this one settle it.
  if (prospect.run.evidence == Evidence::near || prospect.run.evidence == Evidence::larger) return false;
  return prospect.looks == 0 && explored_ns_ + cost <= share_ * worked_ns_;
}

std::optional<std::size_t> Exploration::next(std::span<const Prospect> prospects) {
  if (prospects.size() < 2) return std::nullopt;
  const double best_ns = best_of(prospects);
  std::optional<std::size_t> chosen;
  const auto rank = [&](std::size_t i) { return std::tuple(prospects[i].looks, prospects[i].cost_ns()); };
  for (std::size_t i = 0; i < prospects.size(); ++i) {
    if (wants_look(prospects[i], best_ns) && (!chosen || rank(i) < rank(*chosen))) chosen = i;
  }
  if (chosen && prospects[*chosen].run.known() && prospects[*chosen].cost_ns() > hopeless * best_ns) {
    explored_ns_ += prospects[*chosen].cost_ns();
  }
  return chosen;
}

}  // namespace kiln::selector
