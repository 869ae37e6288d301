#include "selector/decision_log.hpp"
#include "selector/model_store.hpp"

#include <kiln/selector_admin.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <utility>

namespace kiln {
namespace {

LearnedArm shown(const selector::ArmKey& key, const selector::Arm& arm) {
  LearnedArm learned;
  learned.operation = key.operation;
  learned.device = key.device;
  learned.driver = key.driver;
  learned.shape = key.shape;
  learned.runs = arm.run.log_ns.count;
  if (learned.runs > 0) {
    learned.run_ns = std::exp(arm.run.log_ns.mean);
    learned.deviation = arm.run.log_ns.deviation(selector::RunAverage::guessed_deviation);
  }
  if (arm.log_transfer.count > 0) learned.transfer_ns = std::exp(arm.log_transfer.mean);
  learned.first_runs = arm.log_first.count;
  if (learned.first_runs > 0) learned.first_ns = std::exp(arm.log_first.mean);
  learned.looks = arm.looks;
  learned.alarms = arm.run.alarms;
  learned.used_us = arm.used;
  return learned;
}

}  // namespace

Result<SelectorModel> read_selector_model(const std::filesystem::path& cache_directory) {
  SelectorModel model;
  model.file = cache_directory / selector::model_file;
  auto stored = selector::read_model(model.file);
  if (!stored) return std::move(stored).error();
  model.exists = stored->exists;
  for (const auto& [key, arm] : stored->arms) model.arms.push_back(shown(key, arm));
  model.not_learned = std::move(stored->unfit);
  model.rejected = std::move(stored->rejected);
  return model;
}

Result<SelectorReset> reset_selector_model(const std::filesystem::path& cache_directory, const std::string& device) {
  SelectorReset reset;
  const std::filesystem::path file = cache_directory / selector::model_file;
  std::error_code ignored;
  if (!std::filesystem::exists(std::filesystem::symlink_status(file, ignored))) return reset;
  const auto lock = selector::lock_model(cache_directory);
  if (!lock) return lock.error();
  auto stored = selector::read_model(file);
  // What cannot be read is gone with everything; where one device is to go, the rest has to be known.
  if (!stored && !device.empty()) return std::move(stored).error();
  selector::StoredModel left;
  if (stored) left = std::move(*stored);
  const std::size_t before = left.arms.size();
  std::erase_if(left.arms, [&](const auto& entry) { return device.empty() || entry.first.device == device; });
  reset.kept = left.arms.size();
  reset.removed = before - reset.kept;
  if (device.empty()) left.unfit.clear();
  if (Status status = selector::write_model(file, left.arms, left.unfit); !status.ok()) return status;
  return reset;
}

// Judging policies on recorded decisions: the doubly robust estimator (Dudík, Langford and Li, "Doubly robust policy
// evaluation and learning", ICML 2011) of the time a decision.
//
// For each decision of a policy, with what was known then as its context:
//   value = Σ π(i) · q(i) + π(a) ÷ p(a) · (r − q(a))
// a: what was chosen, p: how likely that was, r: what it took; π: the judged policy's probabilities; q: the mean of the
// other outcomes of that bucket on that device in the log, else what was believed. It assumes that a policy is shown
// what the recording one knew (it does not learn from choices of its own), that outcomes do not depend on earlier
// choices but through the figures recorded, and p is floored, so that where a policy goes where the recording one never
// went the verdict rests on q. Looks are common to all policies and are not judged.

namespace {

using selector::Option;
using selector::RecordedDecision;

constexpr double least_propensity = 0.02;
constexpr int draws = 64;
constexpr int resamples = 400;
constexpr const char* policy_names[] = {"first", "ema", "epsilon", "ucb", "thompson"};

struct Outcomes {
  double total_ns = 0;
  std::size_t count = 0;
};

double mean_of(const std::vector<double>& values) {
  double total = 0;
  for (const double value : values) total += value;
  return total / static_cast<double>(values.size());
}

class Judge {
 public:
  explicit Judge(const std::vector<RecordedDecision>& decisions) {
    for (const RecordedDecision& decision : decisions) {
      if (decision.fit_ns.empty()) continue;
      Outcomes& outcomes = outcomes_[{decision.bucket, decision.chosen_device}];
      outcomes.total_ns += mean_of(decision.fit_ns);
      ++outcomes.count;
    }
  }

  // The run's time expected of option i, by every outcome but the decision's own.
  double expected_ns(const RecordedDecision& decision, std::size_t i) const {
    const auto at = outcomes_.find({decision.bucket, decision.options[i].device});
    Outcomes others = at == outcomes_.end() ? Outcomes{} : at->second;
    if (i == decision.chosen && others.count > 0) {
      others.total_ns -= mean_of(decision.fit_ns);
      --others.count;
    }
    const double run_ns = others.count > 0 ? others.total_ns / static_cast<double>(others.count)
                                           : std::exp(decision.options[i].option.log_ns);
    return decision.options[i].option.fixed_ns + run_ns;
  }

 private:
  std::map<std::pair<std::string, std::string>, Outcomes> outcomes_;
};

std::vector<double> shares_of(selector::Policy* policy, const RecordedDecision& decision, std::mt19937_64& random) {
  std::vector<double> shares(decision.options.size());
  if (policy == nullptr) {  // "first"
    shares[0] = 1;
    return shares;
  }
  std::vector<Option> options;
  for (const auto& recorded : decision.options) options.push_back(recorded.option);
  for (int draw = 0; draw < draws; ++draw) shares[policy->choose(options, random)] += 1.0 / draws;
  return shares;
}

void resample(const std::vector<double>& values, std::mt19937_64& random, PolicyVerdict& verdict) {
  std::vector<double> means;
  std::uniform_int_distribution<std::size_t> pick(0, values.size() - 1);
  for (int i = 0; i < resamples; ++i) {
    double total = 0;
    for (std::size_t j = 0; j < values.size(); ++j) total += values[pick(random)];
    means.push_back(total / static_cast<double>(values.size()));
  }
  std::ranges::sort(means);
  verdict.low_ns = means[static_cast<std::size_t>(0.025 * resamples)];
  verdict.high_ns = means[static_cast<std::size_t>(0.975 * resamples)];
}

}  // namespace

Result<SelectorReplay> replay_selector_log(const std::filesystem::path& log, const SelectorConfig& config) {
  auto recorded = selector::read_decisions(log);
  if (!recorded) return std::move(recorded).error();
  SelectorReplay replay;
  replay.decisions = recorded->decisions.size();
  replay.rejected = std::move(recorded->rejected);
  const Judge judge(recorded->decisions);
  std::vector<const RecordedDecision*> judged;
  for (const RecordedDecision& decision : recorded->decisions) {
    if (decision.ground == "look") {
      ++replay.looks;
    } else if (decision.options.empty() || decision.fit_ns.empty()) {
      ++replay.without_outcome;
    } else {
      judged.push_back(&decision);
      replay.recorded_mean_ns += decision.options[decision.chosen].option.fixed_ns + mean_of(decision.fit_ns);
    }
  }
  replay.judged = judged.size();
  if (judged.empty()) return replay;
  replay.recorded_mean_ns /= static_cast<double>(judged.size());
  for (const char* name : policy_names) {
    std::unique_ptr<selector::Policy> policy;
    if (std::string(name) != "first") {
      SelectorConfig one = config;
      one.policy = name;
      auto made = selector::make_policy(one);
      if (!made) return std::move(made).error();
      policy = std::move(made).value();
    }
    std::mt19937_64 random;
    PolicyVerdict verdict;
    verdict.policy = name;
    std::vector<double> values;
    for (const RecordedDecision* decision : judged) {
      const std::vector<double> shares = shares_of(policy.get(), *decision, random);
      double value = 0;
      for (std::size_t i = 0; i < shares.size(); ++i) {
        if (shares[i] > 0) value += shares[i] * judge.expected_ns(*decision, i);
      }
      const std::size_t chosen = decision->chosen;
      const double took_ns = decision->options[chosen].option.fixed_ns + mean_of(decision->fit_ns);
      const double weight = shares[chosen] / std::max(decision->options[chosen].propensity, least_propensity);
      value += weight * (took_ns - judge.expected_ns(*decision, chosen));
      values.push_back(value);
      verdict.agreement += shares[chosen];
    }
    verdict.mean_ns = mean_of(values);
    verdict.agreement /= static_cast<double>(judged.size());
    resample(values, random, verdict);
    replay.policies.push_back(std::move(verdict));
  }
  std::ranges::sort(replay.policies, {}, &PolicyVerdict::mean_ns);
  return replay;
}

}  // namespace kiln
