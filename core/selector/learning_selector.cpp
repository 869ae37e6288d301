#include "selector/learning_selector.hpp"

#include "selector/fixed_selector.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>

namespace kiln {
namespace {

using selector::Prospect;

constexpr std::chrono::seconds save_interval{5};

// A Winograd transform does up to four times fewer operations than the direct FLOPs that rates are counted in: F(4, 3).
double direct_rate_limit(const KernelSpec& spec, const DeviceInfo& device) {
  const auto* conv = std::get_if<Conv2dSpec>(&spec);
  return device.roof_gflops * (conv != nullptr && conv->accuracy == Accuracy::winograd ? 4 : 1);
}

std::string times(double figure) {
  std::string text = std::to_string(figure);
  return text.substr(0, text.find('.') + 2);
}

}  // namespace

Result<std::unique_ptr<DeviceSelector>> LearningSelector::create(const SelectorContext& context) {
  const SelectorConfig& config = context.config;
  if (!(config.ema_alpha > 0 && config.ema_alpha <= 1)) {
    return invalid_argument("[selector] ema_alpha = " + std::to_string(config.ema_alpha) +
                            ": expected above 0, up to 1");
  }
  if (!(config.exploration >= 0 && config.exploration <= 1)) {
    return invalid_argument("[selector] exploration = " + std::to_string(config.exploration) + ": expected 0 to 1");
  }
  auto policy = selector::make_policy(config);
  if (!policy) return std::move(policy).error();
  return std::unique_ptr<DeviceSelector>(new LearningSelector(context, std::move(policy).value()));
}

LearningSelector::LearningSelector(const SelectorContext& context, std::unique_ptr<selector::Policy> policy)
    : context_(context),
      model_(context.config.ema_alpha),
      exploration_(context.config.exploration),
      policy_(std::move(policy)),
      next_save_(Clock::now() + save_interval),
      store_(context.cache_directory, context.log) {}

LearningSelector::~LearningSelector() {
  if (unsaved_) store_.save(model_.arms());
}

void LearningSelector::load_once() {
  if (loaded_) return;
  loaded_ = true;
  const std::lock_guard lock(store_mutex_);
  store_.load(model_);
}

Result<Choice> LearningSelector::select(const KernelSpec& spec, std::span<const Candidate> candidates) noexcept {
  try {
    if (auto decided = selector::by_preference(context_.device, candidates)) return *std::move(decided);
    const std::lock_guard lock(mutex_);
    load_once();
    Choice choice = choose(selector::bucket_of(spec), candidates);
    choice.because = selector::missed_preference(context_.device) + choice.because;
    return choice;
  } catch (const std::exception& error) {
    return internal_error(std::string("selector learning: ") + error.what());
  }
}

Choice LearningSelector::choose(const selector::ShapeBucket& bucket, std::span<const Candidate> candidates) {
  const std::vector<Prospect> prospects = selector::prospects_of(model_, bucket, candidates);
  if (prospects.size() == 1) return {0, "the only candidate; " + prospects[0].text()};

  if (const auto look = exploration_.next(prospects)) {
    model_.count_look(bucket, *candidates[*look].device);
    unsaved_ = true;
    return {*look, "look " + std::to_string(prospects[*look].looks + 1) + " of at most " +
                       std::to_string(selector::Exploration::most_looks) + "; " + selector::text_of(prospects, *look)};
  }

  double least_ns = std::numeric_limits<double>::infinity();
  for (const Prospect& prospect : prospects) least_ns = std::min(least_ns, prospect.cost_ns());
  std::vector<selector::Option> options;
  std::vector<std::size_t> candidate_of;
  for (std::size_t i = 0; i < prospects.size(); ++i) {
    if (!prospects[i].run.known()) continue;
    // A guess that bad is no reason for a gamble: whether it is tried is for the looks to say.
    const bool hopeless = prospects[i].cost_ns() > selector::Exploration::hopeless * least_ns;
    if (hopeless && prospects[i].run.evidence != selector::Evidence::own) continue;
    options.push_back(
        {prospects[i].fixed_ns(), prospects[i].run.log_ns, prospects[i].run.log_deviation, prospects[i].run.runs});
    candidate_of.push_back(i);
  }
  if (options.empty()) {
    return {0, "nothing was learned from the looks at any candidate: the first; " + selector::text_of(prospects, 0)};
  }
  const std::size_t option = policy_->choose(options, random_);
  const std::size_t chosen = candidate_of[option];
  std::string because = selector::text_of(prospects, chosen);
  if (option != selector::cheapest(options))
    because += " (chosen to learn more: policy " + context_.config.policy + ")";
  return {chosen, std::move(because)};
}

bool LearningSelector::is_steady(const KernelSpec& spec, const DeviceInfo& device, const Measurement& measurement,
                                 double run_ns) const {
  if (measurement.first_run || measurement.prepared || measurement.verified == false || run_ns < 1) return false;
  const double limit = direct_rate_limit(spec, device);
  if (limit <= 0) return true;
  const double device_ns = static_cast<double>(measurement.device_ns);
  const double rate = flops(spec) / (device_ns > 0 ? std::min(device_ns, run_ns) : run_ns);
  if (rate <= limit) return true;
  context_.log.write(LogLevel::warning, "selector",
                     "device " + device.id + ": " + times(rate) + " GFLOP/s measured, expected at most " +
                         times(limit) + " (its roof): not learned from");
  return false;
}

void LearningSelector::record(const KernelSpec& spec, const DeviceInfo& device,
                              const Measurement& measurement) noexcept {
  try {
    // The wait in the queue is another job's time; the next choice adds that of its own moment.
    const double run_ns = static_cast<double>(measurement.wall_ns) -
                          static_cast<double>(std::min(measurement.queue_ns, measurement.wall_ns));
    const selector::ShapeBucket bucket = selector::bucket_of(spec);
    {
      const std::lock_guard lock(mutex_);
      load_once();
      model_.settle_driver(bucket, device);
      exploration_.spend(run_ns);
      const bool was_cold = measurement.tier != Tier::memory && measurement.tier != Tier::invalid;
      if (was_cold && measurement.build_ns > 0) {
        model_.learn_build(bucket, device, static_cast<double>(measurement.build_ns));
      }
      if (is_steady(spec, device, measurement, run_ns)) model_.learn_run(bucket, device, run_ns);
      unsaved_ = true;
    }
    save_now_and_then();
  } catch (const std::exception& error) {
    context_.log.write(LogLevel::warning, "selector", std::string("a measurement was not recorded: ") + error.what());
  }
}

void LearningSelector::save_now_and_then() {
  std::unique_lock lock(mutex_);
  if (!unsaved_ || Clock::now() < next_save_) return;
  next_save_ = Clock::now() + save_interval;
  unsaved_ = false;
  const std::map<selector::ArmKey, selector::Arm> arms = model_.arms();
  const std::lock_guard store_lock(store_mutex_);
  lock.unlock();  // others choose while this thread writes
  store_.save(arms);
}

}  // namespace kiln
