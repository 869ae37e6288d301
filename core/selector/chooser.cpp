#include "selector/chooser.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kiln::selector {
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
    if (decision.candidate == prospects.size()) decision.candidate = 0;
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
  const auto at = charged_.find(name_of(bucket, device));
  if (at == charged_.end()) return;
  exploration_.charge(job_ns - at->second.run_ns);
  if (--at->second.runs == 0) charged_.erase(at);
}

void Chooser::commit(const ShapeBucket& bucket, std::span<const Prospect> prospects, const Decision& decision) {
  if (decision.charged_ns > 0) {
    const Prospect& chosen = prospects[decision.candidate];
    exploration_.charge(decision.charged_ns);
    if (charged_.size() >= most_charged) charged_.clear();  // what never ended stays charged as expected
    charged_[name_of(bucket, *chosen.device)] = {decision.charged_ns / chosen.repeat, chosen.repeat};
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
               " is built and can be looked at; " + figures;
      }
      const std::uint32_t number = prospects[decision.candidate].looks + 1;
      if (decision.charged_ns > 0) return "look " + std::to_string(number) + ", paid for by the budget; " + figures;
      return "look " + std::to_string(number) + " of at most " + std::to_string(Exploration::most_looks) + "; " +
             figures;
    }
    case Ground::policy:
      if (decision.build_ahead) {
        return "serves until the program of " + prospects[*decision.build_ahead].device->id + " is built; " + figures;
      }
      return decision.explores ? figures + " (chosen to learn more: policy " + policy_name_ + ")" : figures;
    case Ground::deadline:
      return figures + " (the job has a deadline: nothing is explored)";
    case Ground::no_estimate:
      return "nothing was learned from the looks at any candidate; " + figures;
    case Ground::invalid:
      break;
  }
  return figures;
}

}  // namespace kiln::selector
