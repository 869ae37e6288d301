// LearningSelector ("learning"): chooses by cost = queue wait + build if cold + run, learned from Measurements.
//
// Unknown candidates are looked at first (exploration.hpp), then the policy decides among the estimates. Not learned
// from: first runs, runs that packed a Constant, results found wrong, and rates above the device's roof. Thread-safety:
// every method from any thread. Ownership: owns the model; it is read from the cache folder at the first call and
// written by the destructor, and at most every few seconds meanwhile.
#pragma once

#include "selector/exploration.hpp"
#include "selector/model/model_store.hpp"
#include "selector/model/performance_model.hpp"
#include "selector/policy/policy.hpp"

#include <kiln/clock.hpp>
#include <kiln/device_selector.hpp>

#include <memory>
#include <mutex>
#include <random>

namespace kiln {

class LearningSelector final : public DeviceSelector {
 public:
  // invalid_argument: an unknown policy, or an ema_alpha or exploration out of range.
  static Result<std::unique_ptr<DeviceSelector>> create(const SelectorContext& context);
  ~LearningSelector() override;

  Result<Choice> select(const KernelSpec& spec, std::span<const Candidate> candidates) noexcept override;
  void record(const KernelSpec& spec, const DeviceInfo& device, const Measurement& measurement) noexcept override;

 private:
  LearningSelector(const SelectorContext& context, std::unique_ptr<selector::Policy> policy);

  void load_once();
  void save_now_and_then();
  Choice choose(const selector::ShapeBucket& bucket, std::span<const Candidate> candidates);
  bool is_steady(const KernelSpec& spec, const DeviceInfo& device, const Measurement& measurement, double run_ns) const;

  const SelectorContext context_;
  std::mutex mutex_;
  selector::PerformanceModel model_;
  selector::Exploration exploration_;
  std::unique_ptr<selector::Policy> policy_;
  std::mt19937_64 random_;  // with a fixed seed: the same history gives the same choices
  bool loaded_ = false;
  bool unsaved_ = false;
  Clock::time_point next_save_;

  std::mutex store_mutex_;  // taken after mutex_, or alone
  selector::ModelStore store_;
};

}  // namespace kiln
