// AmdgpuDriver: the AMD render nodes of a NodeSource as devices of the contract. This version runs no kernels, so no
// device is usable and each says so.
//
// Thread-safety: every method from any thread. Ownership: owns its NodeSource; borrows nothing.
#pragma once

#include <kiln/device.hpp>

#include "amdgpu_pm4/node_source.hpp"

namespace kiln::amdgpu_pm4 {

// Real hardware is initialized only where the user opted in; what drmGetVersion tells is read without.
enum class Hardware : std::uint8_t { untouched, opted_in };

// The key `hardware` of [plugin.amdgpu_pm4]; absent: untouched.
Hardware hardware_of(const PluginSettings& settings);

class AmdgpuDriver final : public Driver {
 public:
  AmdgpuDriver(NodeSource nodes, Hardware hardware, Log log);

  // Ids are "amdgpu:N" by the order of the nodes' paths. No node: one entry that says so.
  std::vector<DeviceInfo> enumerate() noexcept override;
  Result<std::unique_ptr<Device>> open(std::string_view id) noexcept override;

 private:
  DeviceInfo describe(const RenderNode& node) const;

  NodeSource nodes_;
  Hardware hardware_;
  Log log_;
};

}  // namespace kiln::amdgpu_pm4
