// VulkanDriver: every device that the Vulkan loader lists: "vulkan:0", "vulkan:1", …; hardware, then simulated, then
// software. Settings: the [plugin.vulkan] section.
//
// Thread-safety: every method from any thread. Ownership: the loader is opened at the first call, not when the plugin
// is loaded.
#pragma once

#include <kiln/device.hpp>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device.hpp"

namespace kiln::vulkan {

struct Settings {
  Validation validation = Validation::off;
  std::uint32_t subgroup = 0;  // 0: the driver chooses
  std::string library = "libvulkan.so.1";
};

std::vector<ConfigKey> setting_keys();
Settings read_settings(const PluginSettings& section);

class VulkanDriver final : public Driver {
 public:
  VulkanDriver(Settings settings, DriverContext context);

  std::vector<DeviceInfo> enumerate() override;
  Result<std::unique_ptr<Device>> open(std::string_view id) noexcept override;

 private:
  void list();  // fills entries_ once; there is at least one entry afterwards

  const Settings settings_;
  const DriverContext context_;
  std::mutex mutex_;
  std::shared_ptr<const VulkanApi> api_;
  std::vector<PhysicalFacts> entries_;
};

}  // namespace kiln::vulkan
