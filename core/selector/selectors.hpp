// The selectors of core: "fixed" and "learning".
//
// Thread-safety: as Registry::add_selector. Ownership: the registry owns the factories.
#pragma once

#include <kiln/device_selector.hpp>
#include <kiln/registry.hpp>

#include <memory>
#include <optional>

namespace kiln {

// Registers both as part of "core".
Status register_selectors(Registry& registry);

// FixedSelector ("fixed"): the device of [device] prefer, or the first candidate. It learns nothing.
//
// Thread-safety: every method from any thread; it has no state. Ownership: owns its configuration.

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

// Returns the choice by the user's preference; an error: no candidates; nullopt: the preference is "auto" or not a
// candidate. The runtime decides before whether another device is allowed.
std::optional<Result<Choice>> by_preference(const DeviceConfig& device, std::span<const Candidate> candidates);
// Text before a reason if the preferred device was not a candidate; else empty.
std::string missed_preference(const DeviceConfig& device);

}  // namespace selector
}  // namespace kiln
