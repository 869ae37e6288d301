// LearningSelector ("learning"): chooses by cost = queue wait + transfer + build if cold + run, learned from
// Measurements.
//
// What is worth knowing is looked at first (exploration.hpp), then the policy decides among the estimates. First runs
// are learned apart; not learned from at all: runs that packed a Constant, were contended, timed out, failed, gave a
// wrong result, or went above the device's roof. Thread-safety: every method from any thread. Ownership: owns the
// model; it is read from the cache folder at the first call; what was learned is merged into it by the destructor, and
// every few seconds meanwhile.
#pragma once

#include "selector/chooser.hpp"
#include "selector/hygiene.hpp"
#include "selector/log/decision_log.hpp"
#include "selector/model/performance_model.hpp"
#include "selector/store/model_store.hpp"

#include <kiln/clock.hpp>
#include <kiln/device_selector.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>

namespace kiln {

class LearningSelector final : public DeviceSelector {
 public:
  // invalid_argument: an unknown policy, or an ema_alpha or exploration out of range.
  static Result<std::unique_ptr<DeviceSelector>> create(const SelectorContext& context);
  ~LearningSelector() override;

  Result<Choice> select(const KernelSpec& spec, std::span<const Candidate> candidates,
                        const JobTerms& terms) noexcept override;
  Result<Explanation> explain(const KernelSpec& spec, std::span<const Candidate> candidates,
                              const JobTerms& terms) noexcept override;
  void record(const KernelSpec& spec, const DeviceInfo& device, const Measurement& measurement,
              const RunConditions& conditions) noexcept override;

 private:
  LearningSelector(const SelectorContext& context, selector::Chooser chooser);

  void load_once();
  // The numbers behind a decision, to the trace. REQUIRES: a trace is wanted.
  void tell(const selector::ShapeBucket& bucket, std::span<const selector::Prospect> prospects,
            const selector::Decision& decision) const;
  void save_now_and_then();
  void save(std::unique_lock<std::mutex>& lock);
  std::uint64_t jobs_of(const selector::ShapeBucket& bucket) const;
  void learn(const selector::ShapeBucket& bucket, const DeviceInfo& device, const Measurement& measurement,
             selector::Unfit unfit);
  void log_unfit(const KernelSpec& spec, const DeviceInfo& device, const Measurement& measurement,
                 selector::Unfit unfit) const;

  const SelectorContext context_;
  std::mutex mutex_;  // taken after store_mutex_, or alone
  selector::PerformanceModel model_;
  selector::Chooser chooser_;
  std::mt19937_64 random_;  // with a fixed seed: the same history gives the same choices
  std::mt19937_64 propensity_random_{1};
  std::map<std::string, std::uint64_t> jobs_;  // runs of a bucket in this process
  selector::UnfitCounts unfit_;                // since the last save
  selector::DecisionLog decisions_;
  bool loaded_ = false;
  bool unsaved_ = false;
  Clock::time_point next_save_;

  std::mutex store_mutex_;
  selector::ModelStore store_;
};

}  // namespace kiln
