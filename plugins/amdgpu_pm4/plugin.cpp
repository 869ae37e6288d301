#include <kiln/plugin.hpp>

#include <memory>
#include <utility>

#include "amdgpu_pm4/device/build_device.hpp"
#include "amdgpu_pm4/device/program.hpp"
#include "amdgpu_pm4/driver.hpp"
#include "amdgpu_pm4/packets/stream_text.hpp"
#include "amdgpu_pm4/toolchain/toolchain.hpp"
#include "amdgpu_pm4/winsys/winsys.hpp"

namespace {

using namespace kiln::amdgpu_pm4;

constexpr const char* name = "amdgpu_pm4";
constexpr const char* driver_name = "amdgpu";  // its devices are amdgpu:0, amdgpu:1

std::vector<kiln::ConfigKey> setting_keys() {
  std::vector<kiln::ConfigKey> keys = toolchain_keys();
  kiln::ConfigKey hardware;
  hardware.name = "hardware";
  hardware.type = kiln::ConfigType::boolean;
  hardware.fallback = false;
  hardware.help =
      "true: real AMD render nodes may be initialized; false: only what the system tells about them is read. "
      "Simulated nodes need no opt-in.";
  keys.insert(keys.begin(), std::move(hardware));
  return keys;
}

Compiler open_compiler(const ToolchainSettings& settings, const kiln::DriverContext& context) {
  auto toolchain = open_toolchain(settings, context.notes, context.log);
  if (!toolchain) return compiler_of(toolchain.error(), settings.deadline);
  return compiler_of(std::shared_ptr<Toolchain>(std::move(toolchain).value()), settings.deadline, context.log);
}

kiln::Result<std::unique_ptr<kiln::Driver>> make_driver(const kiln::DriverContext& context) {
  if (context.counters == nullptr) return kiln::invalid_argument("driver 'amdgpu_pm4': created without work counters");
  auto settings = read_toolchain_settings(context.settings);
  if (!settings) return settings.error();
  return std::unique_ptr<kiln::Driver>(std::make_unique<AmdgpuDriver>(
      libdrm_nodes(), [settings = std::move(settings).value(), context] { return open_compiler(settings, context); },
      context));
}

kiln::Result<std::unique_ptr<kiln::StreamPrinter>> make_printer(const kiln::OfflineContext&) {
  return std::unique_ptr<kiln::StreamPrinter>(std::make_unique<Pm4Printer>());
}

kiln::Status register_plugin(kiln::Registry& registry, const kiln::PluginContext& context) {
  for (const kiln::Status& status : {registry.add_config_keys(context.name, setting_keys()),
                                     registry.add_driver(context.name, driver_name, make_driver),
                                     registry.add_ahead_compiler(context.name, name, make_ahead_compiler),
                                     registry.add_stream_printer(context.name, "pm4", make_printer)}) {
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace

KILN_PLUGIN("amdgpu_pm4", "0.1.0", register_plugin);
