#include "selector/selectors.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <exception>
#include <memory>

#include <kiln/clock.hpp>

namespace kiln {

Status register_selectors(Registry& registry) {
  Status status = registry.add_selector(
      "core", "fixed", [](const SelectorContext& context) -> Result<std::unique_ptr<DeviceSelector>> {
        return std::unique_ptr<DeviceSelector>(std::make_unique<FixedSelector>(context.device));
      });
  if (!status.ok()) return status;
  return registry.add_selector("core", "learning", LearningSelector::create);
}

namespace selector {
namespace {

constexpr const char* no_preference = "auto";

}  // namespace

std::optional<Result<Choice>> by_preference(const DeviceConfig& device, std::span<const Candidate> candidates) {
  if (candidates.empty()) return unavailable("no device can serve: no candidate exists");
  if (device.prefer == no_preference) return std::nullopt;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::string& id = candidates[i].device->id;
    if (id == device.prefer) return Choice{i, "[device] prefer = \"" + id + "\""};
  }
  return std::nullopt;
}

std::string missed_preference(const DeviceConfig& device) {
  if (device.prefer == no_preference) return {};
  return "[device] prefer = \"" + device.prefer + "\" cannot serve; ";
}

}  // namespace selector

Result<Choice> FixedSelector::select(const ShapeBucket&, std::span<const Candidate> candidates,
                                     const JobTerms&) noexcept {
  if (auto decided = selector::by_preference(device_, candidates)) return *std::move(decided);
  return Choice{0, selector::missed_preference(device_) + candidates[0].device->id + ": the first of " +
                       std::to_string(candidates.size()) + (candidates.size() == 1 ? " candidate" : " candidates") +
                       " (selector fixed)"};
}

Result<Explanation> FixedSelector::explain(const ShapeBucket& bucket, std::span<const Candidate> candidates,
                                           const JobTerms& terms) noexcept {
  auto choice = select(bucket, candidates, terms);
  if (!choice) return std::move(choice).error();
  Explanation explanation;
  explanation.bucket = "any";
  explanation.words = {choice->because, "selector fixed measures nothing and has no figures"};
  explanation.choice = std::move(*choice);
  return explanation;
}

void FixedSelector::record(const ShapeBucket&, const DeviceInfo&, const Measurement&, const RunConditions&) noexcept {}

namespace {

using selector::Decision;
using selector::Ground;
using selector::Prospect;
using selector::Unfit;

constexpr std::chrono::seconds save_interval{2};
constexpr std::size_t most_buckets = 4096;

std::string one_decimal(double figure) {
  std::string text = std::to_string(figure);
  return text.substr(0, text.find('.') + 2);
}

std::string percent(double share) { return one_decimal(100 * share) + " %"; }

std::string factor(double log_deviation) { return "x" + one_decimal(std::exp(log_deviation)); }

// "cpu: 0.48 ms = 0.46 ms run + 0.02 ms transfer (12 runs, within x1.1)"
std::string statement(const Prospect& prospect) {
  const CandidateCost cost = prospect.figures();
  std::string words = cost.device + ": ";
  if (!prospect.run.known()) return words + "not measured yet, and no estimate is possible";
  words += selector::duration_text(cost.cost_ns) + " = " + selector::duration_text(cost.run_ns) + " run";
  if (cost.transfer_ns > 0) words += " + " + selector::duration_text(cost.transfer_ns) + " transfer";
  if (cost.queue_ns > 0) words += " + " + selector::duration_text(cost.queue_ns) + " queue";
  if (cost.build_ns > 0) {
    words += " + " + selector::duration_text(cost.build_ns) + " build ÷ " +
             std::to_string(static_cast<std::uint64_t>(prospect.uses)) + " runs";
  }
  words += " (" + cost.evidence + ", within " + factor(cost.deviation);
  if (prospect.looks > 0) words += ", looks " + std::to_string(prospect.looks);
  return words + ")";
}

}  // namespace

Result<std::unique_ptr<DeviceSelector>> LearningSelector::create(const SelectorContext& context) {
  const SelectorConfig& config = context.config;
  if (!(config.ema_alpha > 0 && config.ema_alpha <= 1)) {
    return invalid_argument("[selector] ema_alpha = " + std::to_string(config.ema_alpha) +
                            ": expected more than 0 and at most 1");
  }
  if (!(config.exploration >= 0 && config.exploration <= 1)) {
    return invalid_argument("[selector] exploration = " + std::to_string(config.exploration) + ": expected 0 to 1");
  }
  auto chooser = selector::Chooser::create(config);
  if (!chooser) return std::move(chooser).error();
  return std::unique_ptr<DeviceSelector>(new LearningSelector(context, std::move(chooser).value()));
}

LearningSelector::LearningSelector(const SelectorContext& context, selector::Chooser chooser)
    : context_(context),
      model_(context.config.ema_alpha),
      chooser_(std::move(chooser)),
      decisions_(context.config.log && !context.read_only ? context.cache_directory : std::filesystem::path{},
                 context.config.max_log, context.log),
      last_save_(Clock::now()),
      store_(context.cache_directory, context.log, context.read_only, context.config.ema_alpha) {}

LearningSelector::~LearningSelector() { LearningSelector::save(); }

void LearningSelector::save() noexcept {
  try {
    const std::lock_guard store_lock(store_mutex_);
    std::unique_lock lock(mutex_);
    if (unsaved_) merge(lock);
  } catch (...) {
    context_.log.write(LogLevel::warning, "selector", caught("the learned model was not saved").message);
  }
}

void LearningSelector::load_once() {
  if (loaded_) return;
  loaded_ = true;
  model_.replace(store_.load());
}

std::uint64_t LearningSelector::jobs_of(const ShapeBucket& bucket) const {
  const auto at = jobs_.find(bucket.operation + bucket.shape);
  return at == jobs_.end() ? 0 : at->second;
}

Result<Choice> LearningSelector::select(const ShapeBucket& bucket, std::span<const Candidate> candidates,
                                        const JobTerms& terms) noexcept {
  try {
    if (auto decided = selector::by_preference(context_.device, candidates)) return *std::move(decided);
    const std::lock_guard lock(mutex_);
    load_once();
    if (jobs_.size() >= most_buckets) jobs_.clear();
    const std::uint64_t jobs = jobs_[bucket.operation + bucket.shape] += std::max(terms.repeat, 1u);
    const std::vector<Prospect> prospects = selector::prospects_of(model_, bucket, candidates, terms, jobs);
    const Decision decision = chooser_.decide(bucket, prospects, terms, &random_);
    std::vector<double> propensities;  // by the budget of the draw
    if (decisions_.enabled()) {
      propensities = chooser_.propensities(decision, prospects.front().repeat, propensity_random_);
    }
    chooser_.commit(bucket, prospects, decision);
    if (decision.ground == Ground::look) {
      const std::size_t looked = decision.wanted_look.value_or(decision.candidate);
      if (!decision.wanted_look) model_.count_look(bucket, *candidates[looked].device);
      unsaved_ = true;
    }
    if (context_.trace != nullptr) tell(bucket, prospects, decision);
    if (decisions_.enabled()) decisions_.decided(bucket, prospects, decision, propensities);
    return Choice{decision.candidate,
                  selector::missed_preference(context_.device) + chooser_.because(prospects, decision),
                  decision.build_ahead};
  } catch (...) {
    return caught("selector learning");
  }
}

void LearningSelector::tell(const ShapeBucket& bucket, std::span<const Prospect> prospects,
                            const Decision& decision) const {
  const std::string of = bucket.operation + " " + bucket.shape;
  std::vector<TraceFigure> figures = {{"bucket", of},
                                      {"chosen", prospects[decision.candidate].device->id},
                                      {"ground", selector::to_string(decision.ground)}};
  std::vector<CandidateCost> costs;
  std::deque<std::string> names;  // which stay where they are
  for (const Prospect& prospect : prospects) costs.push_back(prospect.figures());
  for (const CandidateCost& cost : costs) {
    const auto add = [&](std::string_view what, auto value) {
      figures.push_back({names.emplace_back(cost.device + " " + std::string(what)), value});
    };
    add("cost_ms", cost.cost_ns / 1e6);
    add("run_ms", cost.run_ns / 1e6);
    add("transfer_ms", cost.transfer_ns / 1e6);
    add("queue_ms", cost.queue_ns / 1e6);
    add("build_ms", cost.build_ns / 1e6);
    add("evidence", std::string_view(cost.evidence));
  }
  context_.trace->add_event({TraceArea::selector, "decision", now_ns(), std::nullopt, figures});
}

Result<Explanation> LearningSelector::explain(const ShapeBucket& bucket, std::span<const Candidate> candidates,
                                              const JobTerms& terms) noexcept {
  try {
    Explanation explanation;
    const std::lock_guard lock(mutex_);
    load_once();
    if (candidates.empty()) return unavailable("no device can serve: no candidate exists");
    explanation.bucket = bucket.operation + " " + bucket.shape;
    const std::uint64_t jobs = jobs_of(bucket) + std::max(terms.repeat, 1u);
    const std::vector<Prospect> prospects = selector::prospects_of(model_, bucket, candidates, terms, jobs);
    const Decision decision = chooser_.decide(bucket, prospects, terms, nullptr);
    explanation.choice = {decision.candidate, chooser_.because(prospects, decision), decision.build_ahead};
    if (auto decided = selector::by_preference(context_.device, candidates)) {
      if (!*decided) return std::move(*decided).error();
      explanation.choice = **decided;
    }
    const std::size_t chosen = explanation.choice.candidate;
    explanation.words.push_back("would choose " + prospects[chosen].device->id + ": " + explanation.choice.because);
    for (const Prospect& prospect : prospects) {
      explanation.candidates.push_back(prospect.figures());
      std::string words = statement(prospect);
      const double ratio = prospect.cost_ns() / prospects[chosen].cost_ns();
      if (&prospect != &prospects[chosen] && std::isfinite(ratio) && ratio > 0) {  // 0: nothing is known of the chosen
        words += "; x" + one_decimal(ratio) + " of the chosen";
      }
      explanation.words.push_back(std::move(words));
    }
    const selector::Exploration& exploration = chooser_.exploration();
    explanation.words.push_back(
        "exploration may take " + percent(exploration.share()) + " of the time; in this process it took " +
        selector::duration_text(exploration.explored_ns()) + " of " + selector::duration_text(exploration.worked_ns()));
    return explanation;
  } catch (...) {
    return caught("selector learning");
  }
}

void LearningSelector::log_unfit(const ShapeBucket& bucket, const DeviceInfo& device, const Measurement& measurement,
                                 Unfit unfit) const {
  if (unfit != Unfit::above_roof) return;
  const selector::Effort effort{bucket.flops, bucket.saving};
  context_.log.write(LogLevel::warning, "selector",
                     "device " + device.id + ": " + one_decimal(selector::rate_of(effort, measurement)) +
                         " GFLOP/s measured, expected at most " + one_decimal(selector::rate_limit(effort, device)) +
                         " (the roof of the device): the measurement is ignored");
}

void LearningSelector::learn(const ShapeBucket& bucket, const DeviceInfo& device, const Measurement& measurement,
                             Unfit unfit) {
  const double run_ns = selector::service_ns(measurement);
  if (unfit == Unfit::first_run) model_.learn_first(bucket, device, run_ns);
  if (unfit != Unfit::fit) return;
  const selector::Drift drift =
      model_.learn_run(bucket, device, run_ns,
                       static_cast<double>(measurement.upload_ns) + static_cast<double>(measurement.readback_ns));
  if (drift == selector::Drift::none) return;
  context_.log.write(LogLevel::info, "selector",
                     "device " + device.id + ": " + bucket.operation + " " + bucket.shape + " has become " +
                         (drift == selector::Drift::slower ? "slower" : "faster") + ": now " +
                         selector::duration_text(std::exp(model_.estimate(bucket, device).log_ns)));
}

void LearningSelector::record(const ShapeBucket& bucket, const DeviceInfo& device, const Measurement& measurement,
                              const RunConditions& conditions) noexcept {
  try {
    const Unfit unfit = selector::judge(bucket, device, measurement, conditions);
    {
      const std::lock_guard lock(mutex_);
      load_once();
      model_.settle_driver(bucket, device);
      if (conditions.status.ok()) chooser_.spend(bucket, device, selector::service_ns(measurement));
      if (conditions.status.ok() && conditions.build_ns > 0 && !conditions.contended) {
        const bool compiled = measurement.tier == Tier::built;
        model_.learn_build(bucket, device, compiled ? selector::build_shape : selector::load_shape,
                           static_cast<double>(conditions.build_ns));
      }
      learn(bucket, device, measurement, unfit);
      if (unfit != Unfit::fit) ++unfit_[std::string(selector::to_string(unfit))];
      if (decisions_.enabled()) decisions_.ended(bucket, device, selector::service_ns(measurement), unfit);
      unsaved_ = true;
    }
    log_unfit(bucket, device, measurement, unfit);
    save_now_and_then();
  } catch (...) {
    context_.log.write(LogLevel::warning, "selector", caught("a measurement was not recorded").message);
  }
}

void LearningSelector::save_now_and_then() {
  {
    const std::lock_guard lock(mutex_);
    if (!unsaved_ || Clock::now() < last_save_ + save_interval) return;
    last_save_ = Clock::now();
  }
  const std::unique_lock store_lock(store_mutex_, std::try_to_lock);
  if (!store_lock) return;  // another thread is at it
  std::unique_lock lock(mutex_);
  merge(lock);
}

// What other processes learned comes in where this one learned nothing meanwhile: while the file is written, others
// choose.
void LearningSelector::merge(std::unique_lock<std::mutex>& lock) {
  unsaved_ = false;
  const std::map<selector::ArmKey, selector::Arm> mine = model_.arms();
  const selector::UnfitCounts unfit = std::exchange(unfit_, {});
  lock.unlock();
  auto all = store_.merge(mine, unfit);
  lock.lock();
  if (!all) unsaved_ = true;
  if (unsaved_) return;  // what is not in the file yet is merged the next time
  store_.adopted(*all);
  model_.replace(std::move(*all));
}

}  // namespace kiln
