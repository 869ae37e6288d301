// FixedSelector ("fixed"): the device that [device] prefer names, or the first candidate. It learns nothing.
//
// Thread-safety: every method from any thread; it has no state. Ownership: owns its configuration.
#pragma once

#include <kiln/device_selector.hpp>

#include <memory>
#include <optional>

namespace kiln {

class FixedSelector final : public DeviceSelector {
 public:
  explicit FixedSelector(DeviceConfig device) : device_(std::move(device)) {}

  Result<Choice> select(const KernelSpec& spec, std::span<const Candidate> candidates,
                        const JobTerms& terms) noexcept override;
  Result<Explanation> explain(const KernelSpec& spec, std::span<const Candidate> candidates,
                              const JobTerms& terms) noexcept override;
  void record(const KernelSpec& spec, const DeviceInfo& device, const Measurement& measurement,
              const RunConditions& conditions) noexcept override;

 private:
  const DeviceConfig device_;
};

namespace selector {

// What the user's preference alone decides: a choice, an error where there is no candidate, or nothing (nullopt) where
// it is "auto" or no candidate. Whether another device may serve is the runtime's decision, made before.
std::optional<Result<Choice>> by_preference(const DeviceConfig& device, std::span<const Candidate> candidates);
// Goes in front of a reason where the preferred device was no candidate; else empty.
std::string missed_preference(const DeviceConfig& device);

}  // namespace selector
}  // namespace kiln
