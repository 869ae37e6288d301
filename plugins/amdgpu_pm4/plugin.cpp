#include <kiln/plugin.hpp>

#include <memory>

#include "amdgpu_pm4/driver.hpp"
#include "amdgpu_pm4/libdrm_nodes.hpp"

namespace {

using kiln::amdgpu_pm4::AmdgpuDriver;

kiln::Result<std::unique_ptr<kiln::Driver>> make_driver(const kiln::DriverContext& context) {
  return std::unique_ptr<kiln::Driver>(std::make_unique<AmdgpuDriver>(
      kiln::amdgpu_pm4::libdrm_nodes(), kiln::amdgpu_pm4::hardware_of(context.settings), context.log));
}

kiln::Status register_plugin(kiln::Registry& registry, const kiln::PluginContext& context) {
  kiln::ConfigKey hardware;
  hardware.name = "hardware";
  hardware.type = kiln::ConfigType::boolean;
  hardware.fallback = false;
  hardware.help =
      "true: real AMD render nodes may be initialized; false: only what the system tells about them is read. "
      "Simulated nodes need no opt-in.";
  if (kiln::Status status = registry.add_config_keys(context.name, {hardware}); !status.ok()) return status;
  return registry.add_driver(context.name, "amdgpu_pm4", make_driver);
}

}  // namespace

KILN_PLUGIN("amdgpu_pm4", "0.1.0", register_plugin);
