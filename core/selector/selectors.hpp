// The selectors of core: "fixed" and "learning".
//
// Thread-safety: as Registry::add_selector. Ownership: the registry owns the factories.
#pragma once

#include <kiln/clock.hpp>
#include <kiln/device_selector.hpp>
#include <kiln/registry.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>

#include "selector/chooser.hpp"
#include "selector/decision_log.hpp"
#include "selector/model_store.hpp"
#include "selector/performance_model.hpp"
#include "selector/sample_filter.hpp"

namespace kiln {

// Registers both as part of "core".
Status register_selectors(Registry& registry);

// FixedSelector ("fixed"): the device of [device] prefer, or the first candidate. It learns nothing.
//
// Thread-safety: every method from any thread; it has no state. Ownership: owns its configuration.

class FixedSelector final : public DeviceSelector {
 public:
  explicit FixedSelector(DeviceConfig device) : device_(std::move(device)) {}

  Result<Choice> select(const ShapeBucket& bucket, std::span<const Candidate> candidates,
                        const JobTerms& terms) noexcept override;
  Result<Explanation> explain(const ShapeBucket& bucket, std::span<const Candidate> candidates,
                              const JobTerms& terms) noexcept override;
  void record(const ShapeBucket& bucket, const DeviceInfo& device, const Measurement& measurement,
              const RunConditions& conditions) noexcept override;

 private:
  const DeviceConfig device_;
};

namespace selector {

// Returns the choice by the user's preference; an error: no candidates; nullopt: the preference is "auto" or not a
// candidate. The runtime decides before whether another device is allowed.
std::optional<Result<Choice>> by_preference(const DeviceConfig& device, std::span<const Candidate> candidates);
// Text before a reason if the preferred device was not a candidate; else empty.
std::string missed_preference(const DeviceConfig& device);

}  // namespace selector

// LearningSelector ("learning"): chooses by cost = queue wait + transfer + build if cold + run, learned from
// Measurements.
//
// Exploration runs come first (chooser.hpp), then the policy decides among the estimates. First runs are learned
// separately. Runs that packed a Constant, were contended, timed out, failed, gave a wrong result or exceeded the roof
// are not learned from (sample_filter.hpp).
// Thread-safety: every method from any thread. Ownership: owns the model. It is read from the cache folder at the first
// call; new samples are merged into the file every few seconds, by save() and by the destructor.

class LearningSelector final : public DeviceSelector {
 public:
  // invalid_argument: an unknown policy, or an ema_alpha or exploration out of range.
  static Result<std::unique_ptr<DeviceSelector>> create(const SelectorContext& context);
  ~LearningSelector() override;

  Result<Choice> select(const ShapeBucket& bucket, std::span<const Candidate> candidates,
                        const JobTerms& terms) noexcept override;
  Result<Explanation> explain(const ShapeBucket& bucket, std::span<const Candidate> candidates,
                              const JobTerms& terms) noexcept override;
  void record(const ShapeBucket& bucket, const DeviceInfo& device, const Measurement& measurement,
              const RunConditions& conditions) noexcept override;
  void save() noexcept override;

 private:
  LearningSelector(const SelectorContext& context, selector::Chooser chooser);

  void load_once();
  // Writes the estimates of a decision to the trace. REQUIRES: there is a trace.
  void tell(const ShapeBucket& bucket, std::span<const selector::Prospect> prospects,
            const selector::Decision& decision) const;
  void save_now_and_then();
  void merge(std::unique_lock<std::mutex>& lock);
  std::uint64_t jobs_of(const ShapeBucket& bucket) const;
  void learn(const ShapeBucket& bucket, const DeviceInfo& device, const Measurement& measurement,
             selector::Unfit unfit);
  void log_unfit(const ShapeBucket& bucket, const DeviceInfo& device, const Measurement& measurement,
                 selector::Unfit unfit) const;

  const SelectorContext context_;
  std::mutex mutex_;  // locked after store_mutex_, or alone
  selector::PerformanceModel model_;
  selector::Chooser chooser_;
  std::mt19937_64 random_;  // fixed seed: equal history gives equal choices
  std::mt19937_64 propensity_random_{1};
  std::map<std::string, std::uint64_t> jobs_;  // runs of a bucket in this process
  selector::UnfitCounts unfit_;                // since the last save
  selector::DecisionLog decisions_;
  bool loaded_ = false;
  bool unsaved_ = false;
  Clock::time_point last_save_;

  std::mutex store_mutex_;
  selector::ModelStore store_;
};

}  // namespace kiln
