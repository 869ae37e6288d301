#include "selector/exploration.hpp"

#include <cmath>
#include <limits>
#include <tuple>

namespace kiln::selector {
namespace {

constexpr double long_shot = 2.33;  // standard deviations: one chance in a hundred

double normal_cdf(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }

// E[max(0, best − X)] for a log-normal X: what a run that turns out cheaper saves.
double expected_saving(double best, double log_mean, double deviation) {
  if (deviation <= 0) return std::max(0.0, best - std::exp(log_mean));
  const double d = (std::log(best) - log_mean) / deviation;
  return best * normal_cdf(d) - std::exp(log_mean + deviation * deviation / 2) * normal_cdf(d - deviation);
}

}  // namespace

std::optional<Exploration::Look> Exploration::look_at(std::span<const Prospect> prospects, std::size_t candidate,
                                                      double best_ns, double best_deviation) const {
  const Prospect& prospect = prospects[candidate];
  const bool allowed = prospect.looks < most_looks && prospect.run.runs < most_looks;
  if (!prospect.run.known() && allowed) return Look{candidate, 0};
  if (!prospect.run.measured() && !allowed) {
    // Nothing came back from its looks that could be learned from. It may be tried again, at the expense of the budget;
    // what it takes is not known, so it is charged as if it were hopeless.
    const double assumed_ns = 10 * best_ns * prospect.repeat;
    if (std::isfinite(assumed_ns) && affords(assumed_ns)) return Look{candidate, assumed_ns};
    return std::nullopt;
  }
  const double cost_ns = prospect.cost_ns();
  if (!allowed) return std::nullopt;
  if (prospect.run.evidence == Evidence::own && cost_ns <= best_ns) return std::nullopt;  // it is chosen anyway
  const double deviation = std::hypot(prospect.run.log_deviation, best_deviation);
  if (prospect.hopeless(best_ns)) {
    const double job_ns = cost_ns * prospect.repeat;
    const bool may_win = std::log(cost_ns / best_ns) < long_shot * deviation;
    if (prospect.looks == 0 && prospect.run.runs == 0 && may_win && affords(job_ns)) return Look{candidate, job_ns};
    return std::nullopt;
  }
  const double saving = expected_saving(best_ns, std::log(cost_ns), deviation);
  const double loss = std::max(0.0, cost_ns - best_ns);
  if (saving * (horizon + prospect.repeat) <= loss * prospect.repeat) return std::nullopt;
  return Look{candidate, 0};
}

std::optional<Exploration::Look> Exploration::next(std::span<const Prospect> prospects) const {
  if (prospects.size() < 2) return std::nullopt;
  const double best_ns = best_cost_ns(prospects);
  double best_deviation = 0;
  for (const Prospect& prospect : prospects) {
    if (prospect.cost_ns() == best_ns && prospect.run.known()) best_deviation = prospect.run.log_deviation;
  }
  std::optional<Look> chosen;
  // Within the allowance first; then those with the fewest looks; of those what needs no compiler, then what nothing is
  // known of, for it may be the fastest at every shape to come, then the cheapest.
  const auto rank = [&](const Look& look) {
    const Prospect& prospect = prospects[look.candidate];
    return std::tuple(look.charged_ns > 0, prospect.looks, prospect.needs_compiler(), prospect.run.measured(),
                      prospect.cost_ns());
  };
  for (std::size_t i = 0; i < prospects.size(); ++i) {
    const auto look = look_at(prospects, i, best_ns, best_deviation);
    if (look && (!chosen || rank(*look) < rank(*chosen))) chosen = look;
  }
  return chosen;
}

std::optional<Exploration::Look> Exploration::again(std::span<const Prospect> prospects,
                                                    std::span<const std::uint64_t> passed_over) const {
  const double best_ns = best_cost_ns(prospects);
  for (std::size_t i = 0; i < prospects.size(); ++i) {
    const Prospect& prospect = prospects[i];
    if (!prospect.run.drifted || passed_over[i] < patience || prospect.cost_ns() <= best_ns) continue;
    const double job_ns = prospect.cost_ns() * prospect.repeat;
    if (affords(job_ns)) return Look{i, job_ns};
  }
  return std::nullopt;
}

}  // namespace kiln::selector
