#include "selector/chooser.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

namespace kiln::selector {

Policy::~Policy() = default;

double Option::expected_ns() const noexcept { return fixed_ns + std::exp(log_ns); }

std::size_t cheapest(std::span<const Option> options) noexcept {
  std::size_t best = 0;
  for (std::size_t i = 1; i < options.size(); ++i) {
    if (options[i].expected_ns() < options[best].expected_ns()) best = i;
  }
  return best;
}

Result<std::unique_ptr<Policy>> make_policy(const SelectorConfig& config) {
  if (config.policy == "ema") return make_ema();
  if (config.policy == "epsilon") return make_epsilon(config.exploration);
  if (config.policy == "ucb") return make_ucb();
  if (config.policy == "thompson") return make_thompson();
  return invalid_argument("[selector] policy = \"" + config.policy + "\": expected ema, epsilon, ucb or thompson");
}

// ema: the least expected cost.
namespace {

class Ema final : public Policy {
 public:
  std::size_t choose(std::span<const Option> options, std::mt19937_64&) override { return cheapest(options); }
};

}  // namespace

std::unique_ptr<Policy> make_ema() { return std::make_unique<Ema>(); }

// epsilon: the least expected cost, except for a share of random choices among candidates that are not hopeless.
namespace {

constexpr double hopeless = 10;  // times the least expected cost

class Epsilon final : public Policy {
 public:
  explicit Epsilon(double share) : share_(share) {}

  std::size_t choose(std::span<const Option> options, std::mt19937_64& random) override {
    const std::size_t best = cheapest(options);
    if (std::uniform_real_distribution<double>(0, 1)(random) >= share_) return best;
    std::vector<std::size_t> possible;
    for (std::size_t i = 0; i < options.size(); ++i) {
      if (options[i].expected_ns() <= hopeless * options[best].expected_ns()) possible.push_back(i);
    }
    return possible[std::uniform_int_distribution<std::size_t>(0, possible.size() - 1)(random)];
  }

 private:
  double share_;
};

}  // namespace

std::unique_ptr<Policy> make_epsilon(double exploration) { return std::make_unique<Epsilon>(exploration); }

// thompson: draws a time for each candidate from its log-normal belief and takes the least, so each is chosen with the
// probability that it is the best.
namespace {

class Thompson final : public Policy {
 public:
  std::size_t choose(std::span<const Option> options, std::mt19937_64& random) override {
    std::size_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < options.size(); ++i) {
      std::normal_distribution<double> belief(options[i].log_ns, options[i].log_deviation);
      const double draw = options[i].fixed_ns + std::exp(belief(random));
      if (draw >= least) continue;
      least = draw;
      best = i;
    }
    return best;
  }
};

}  // namespace

std::unique_ptr<Policy> make_thompson() { return std::make_unique<Thompson>(); }

// ucb: the least lower confidence bound of the cost; the interval grows with the number of runs of all candidates.
namespace {

class Ucb final : public Policy {
 public:
  std::size_t choose(std::span<const Option> options, std::mt19937_64&) override {
    std::uint64_t runs = 0;
    for (const Option& option : options) runs += option.runs;
    const double width = std::sqrt(2 * std::log(1 + static_cast<double>(runs)));
    const auto bound = [&](const Option& option) {
      return option.fixed_ns + std::exp(option.log_ns - width * option.log_deviation);
    };
    std::size_t best = 0;
    for (std::size_t i = 1; i < options.size(); ++i) {
      if (bound(options[i]) < bound(options[best])) best = i;
    }
    return best;
  }
};

}  // namespace

std::unique_ptr<Policy> make_ucb() { return std::make_unique<Ucb>(); }

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

namespace {

// A look waits so many jobs for its program to be asked for again; then the shapes evidently do not come back, and it
// is taken where it stands.
constexpr std::uint32_t most_waiting_jobs = 8;
constexpr int propensity_draws = 64;
constexpr std::size_t most_charged = 256;
constexpr std::size_t most_passed_over = 4096;

std::string name_of(const ShapeBucket& bucket, const DeviceInfo& device) { return bucket.shape + "|" + device.id; }

std::size_t soonest(std::span<const Prospect> prospects, std::size_t but_not) {
  std::size_t best = but_not;
  const auto better = [&](const Prospect& a, const Prospect& b) {
    if (a.needs_compiler() != b.needs_compiler()) return b.needs_compiler();
    return a.now_ns() < b.now_ns();
  };
  for (std::size_t i = 0; i < prospects.size(); ++i) {
    if (i != but_not && (best == but_not || better(prospects[i], prospects[best]))) best = i;
  }
  return best;
}

}  // namespace

std::string_view to_string(Ground ground) noexcept {
  switch (ground) {
    case Ground::only_one:
      return "only one";
    case Ground::look:
      return "look";
    case Ground::policy:
      return "policy";
    case Ground::deadline:
      return "deadline";
    case Ground::no_estimate:
      return "no estimate";
    case Ground::invalid:
      break;
  }
  return "invalid";
}

Result<Chooser> Chooser::create(const SelectorConfig& config) {
  auto policy = make_policy(config);
  if (!policy) return std::move(policy).error();
  return Chooser(config, std::move(policy).value());
}

Decision Chooser::decide(const ShapeBucket& bucket, std::span<const Prospect> prospects, const JobTerms& terms,
                         std::mt19937_64* random) const {
  Decision decision;
  if (prospects.size() == 1) {
    decision.ground = Ground::only_one;
    return decision;
  }
  if (!terms.has_deadline) {
    if (const auto found = look(bucket, prospects)) {
      decision.candidate = found->candidate;
      decision.ground = Ground::look;
      decision.charged_ns = found->charged_ns;
      decision.explores = true;
      if (terms.can_build_ahead) serve_while_building(bucket, prospects, decision);
      return decision;
    }
  }
  const double least_ns = best_cost_ns(prospects);
  const bool any_measured = std::isfinite(least_ns);
  for (std::size_t i = 0; i < prospects.size(); ++i) {
    const Prospect& prospect = prospects[i];
    // A roof promises more than any device keeps: it counts where there is nothing else to go by.
    if (any_measured ? !prospect.run.measured() : !prospect.run.known()) continue;
    if (prospect.hopeless(least_ns)) continue;  // it was tried once and is left
    decision.options.push_back(
        {prospect.fixed_ns(), prospect.run.log_ns, prospect.run.log_deviation, prospect.run.runs});
    decision.candidate_of.push_back(i);
  }
  if (decision.options.empty()) {
    decision.ground = Ground::no_estimate;
    decision.candidate = soonest(prospects, prospects.size());
    return decision;
  }
  decision.cheapest = cheapest(decision.options);
  std::size_t option = decision.cheapest;
  decision.ground = terms.has_deadline ? Ground::deadline : Ground::policy;
  if (!terms.has_deadline) option = drawn(decision, prospects.front().repeat, random);
  decision.explores = option != decision.cheapest;
  if (decision.explores) decision.charged_ns = decision.options[option].expected_ns() * prospects.front().repeat;
  decision.candidate = decision.candidate_of[option];
  if (terms.can_build_ahead) serve_while_building(bucket, prospects, decision);
  return decision;
}

std::optional<Exploration::Look> Chooser::look(const ShapeBucket& bucket, std::span<const Prospect> prospects) const {
  if (const auto found = exploration_.next(prospects)) return found;
  if (passed_over_.empty()) return std::nullopt;
  std::vector<std::uint64_t> passed_over;
  for (const Prospect& prospect : prospects) {
    const auto at = passed_over_.find(name_of(bucket, *prospect.device));
    passed_over.push_back(at == passed_over_.end() ? 0 : at->second);
  }
  return exploration_.again(prospects, passed_over);
}

std::size_t Chooser::drawn(const Decision& decision, std::uint32_t repeat, std::mt19937_64* random) const {
  if (random == nullptr) return decision.cheapest;
  const std::size_t option = policy_->choose(decision.options, *random);
  if (option == decision.cheapest) return option;
  return exploration_.affords(decision.options[option].expected_ns() * repeat) ? option : decision.cheapest;
}

std::vector<double> Chooser::propensities(const Decision& decision, std::uint32_t repeat,
                                          std::mt19937_64& random) const {
  std::vector<double> shares(decision.options.size());
  if (shares.empty()) return shares;
  for (int draw = 0; draw < propensity_draws; ++draw) {
    shares[drawn(decision, repeat, &random)] += 1.0 / propensity_draws;
  }
  return shares;
}

// The job need not wait for a compiler: another candidate serves it, and the program is built beside it.
void Chooser::serve_while_building(const ShapeBucket& bucket, std::span<const Prospect> prospects,
                                   Decision& decision) const {
  std::size_t wanted = decision.candidate;
  if (decision.ground == Ground::policy && !decision.explores) {
    // The one that would be best if its program were there.
    for (std::size_t i = 0; i < prospects.size(); ++i) {
      const auto warm_ns = [&](std::size_t j) {
        return prospects[j].run.measured() ? prospects[j].queue_ns / prospects[j].repeat + prospects[j].run_ns()
                                           : std::numeric_limits<double>::infinity();
      };
      if (warm_ns(i) < warm_ns(wanted)) wanted = i;
    }
  }
  if (!prospects[wanted].needs_compiler()) return;
  const std::size_t server = soonest(prospects, wanted);
  const bool sooner = !prospects[server].needs_compiler() &&
                      (!prospects[server].run.measured() || prospects[server].now_ns() < prospects[wanted].now_ns() ||
                       !prospects[wanted].run.measured());
  if (!sooner) return;
  if (decision.ground == Ground::look) {
    const auto waiting = ahead_.find(prospects[wanted].device->id);
    if (waiting != ahead_.end() && waiting->second.jobs >= most_waiting_jobs) return;
    const bool asked = waiting != ahead_.end();
    decision.wanted_look = wanted;
    if (!asked || waiting->second.shape == bucket.shape) decision.build_ahead = wanted;
    decision.charged_ns = 0;
    decision.explores = false;
  } else {
    decision.build_ahead = wanted;
  }
  decision.candidate = server;
}

void Chooser::spend(const ShapeBucket& bucket, const DeviceInfo& device, double job_ns) {
  exploration_.spend(job_ns);
  const auto at = charged_.find(std::this_thread::get_id());
  if (at == charged_.end() || at->second.name != name_of(bucket, device)) return;
  exploration_.charge(job_ns - at->second.run_ns);
  if (--at->second.runs == 0) charged_.erase(at);
}

void Chooser::commit(const ShapeBucket& bucket, std::span<const Prospect> prospects, const Decision& decision) {
  const std::thread::id thread = std::this_thread::get_id();
  charged_.erase(thread);  // what never ended stays charged as expected
  if (decision.charged_ns > 0) {
    const Prospect& chosen = prospects[decision.candidate];
    exploration_.charge(decision.charged_ns);
    if (charged_.size() >= most_charged) charged_.clear();
    charged_[thread] = {name_of(bucket, *chosen.device), decision.charged_ns / chosen.repeat, chosen.repeat};
  }
  for (std::size_t i = 0; i < prospects.size(); ++i) {
    if (!prospects[i].run.drifted) continue;
    if (passed_over_.size() >= most_passed_over) passed_over_.clear();
    std::uint64_t& runs = passed_over_[name_of(bucket, *prospects[i].device)];
    runs = i == decision.candidate ? 0 : runs + prospects[i].repeat;
  }
  if (decision.ground != Ground::look) return;
  if (!decision.wanted_look) {
    ahead_.erase(prospects[decision.candidate].device->id);
    return;
  }
  const auto [waiting, added] = ahead_.try_emplace(prospects[*decision.wanted_look].device->id);
  if (added) waiting->second.shape = bucket.shape;
  ++waiting->second.jobs;
}

std::string Chooser::because(std::span<const Prospect> prospects, const Decision& decision) const {
  const std::string figures = text_of(prospects, decision.candidate);
  switch (decision.ground) {
    case Ground::only_one:
      return "the only candidate; " + figures;
    case Ground::look: {
      if (decision.wanted_look) {
        return "serves until the program of " + prospects[*decision.wanted_look].device->id +
               " is built and can be measured; " + figures;
      }
      const std::uint32_t number = prospects[decision.candidate].looks + 1;
      if (decision.charged_ns > 0) {
        return "exploration run " + std::to_string(number) + ", charged to the exploration budget; " + figures;
      }
      return "exploration run " + std::to_string(number) + " of at most " + std::to_string(Exploration::most_looks) +
             "; " + figures;
    }
    case Ground::policy:
      if (decision.build_ahead) {
        return "serves until the program of " + prospects[*decision.build_ahead].device->id + " is built; " + figures;
      }
      return decision.explores ? figures + " (chosen to learn more: policy " + policy_name_ + ")" : figures;
    case Ground::deadline:
      return figures + " (no exploration, because the job has a deadline)";
    case Ground::no_estimate:
      return "the exploration runs of all candidates gave no estimate; " + figures;
    case Ground::invalid:
      break;
  }
  return figures;
}

}  // namespace kiln::selector
