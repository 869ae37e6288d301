// AmdgpuDriver: the AMD render nodes of a NodeSource as devices of the contract.
//
// Proven on Kiln's simulated device, untested on hardware: real nodes are initialized only where the user opted in.
// Thread-safety: every method from any thread. Ownership: owns its NodeSource; counters, log sink and notes belong to
// the application and outlive it.
#pragma once

#include <kiln/device.hpp>

#include <functional>

#include "amdgpu_pm4/device/program.hpp"
#include "amdgpu_pm4/winsys/winsys.hpp"

namespace kiln::amdgpu_pm4 {

// Real hardware is initialized only where the user opted in; what drmGetVersion tells is read without.
enum class Hardware : std::uint8_t { untouched, opted_in };

// The key `hardware` of [plugin.amdgpu_pm4]; absent: untouched.
Hardware hardware_of(const PluginSettings& settings);

class AmdgpuDriver final : public Driver {
 public:
  // The compiler is made when a device is opened: looking for one takes a while. REQUIRES: context.counters.
  AmdgpuDriver(NodeSource nodes, std::function<Compiler()> make_compiler, DriverContext context);

  // Ids are "amdgpu:N" by the order of the nodes' paths. No node: one entry that says so.
  std::vector<DeviceInfo> enumerate() override;
  Result<std::unique_ptr<Device>> open(std::string_view id) noexcept override;

 private:
  Result<std::vector<RenderNode>> amd_nodes() const;
  DeviceInfo describe(const RenderNode& node) const;

  NodeSource nodes_;
  std::function<Compiler()> make_compiler_;
  DriverContext context_;
  Hardware hardware_;
};

}  // namespace kiln::amdgpu_pm4
