#include "driver.hpp"

#include <algorithm>

#include <kiln/plugin.hpp>
#include <kiln/process_limits.hpp>

#include "gpu.hpp"

namespace kiln::vulkan {
namespace {

// A driver that computes on the host ends the process where it is refused memory.
constexpr std::uint64_t memory_to_open = 1024ULL << 20U;

int rank(DeviceKind kind) noexcept { return kind == DeviceKind::gpu ? 0 : kind == DeviceKind::simulated ? 1 : 2; }

PhysicalFacts unusable(std::string why_not) {
  PhysicalFacts facts;
  facts.info.kind = DeviceKind::gpu;
  facts.info.name = "Vulkan";
  facts.info.dialects = {Dialect::glsl, Dialect::code_object};
  facts.info.why_not = std::move(why_not);
  return facts;
}

}  // namespace

std::vector<ConfigKey> setting_keys() {
  return {
      {"validation",
       ConfigType::boolean,
       false,
       "Loads VK_LAYER_KHRONOS_validation; its messages go to the log. Slow: for tests",
       {},
       {},
       {}},
      {"subgroup_size",
       ConfigType::integer,
       std::int64_t{0},
       "Lanes of a subgroup that every program requires; 0 leaves it to the driver",
       0,
       128,
       {}},
      {"vulkan_library",
       ConfigType::text,
       std::string("libvulkan.so.1"),
       "The Vulkan loader that is opened at first use",
       {},
       {},
       {}},
  };
}

Settings read_settings(const PluginSettings& section) {
  Settings settings;
  if (const auto at = section.find("validation"); at != section.end()) {
    const bool* on = std::get_if<bool>(&at->second);
    if (on != nullptr && *on) settings.validation = Validation::on;
  }
  if (const auto at = section.find("subgroup_size"); at != section.end()) {
    if (const auto* size = std::get_if<std::int64_t>(&at->second))
      settings.subgroup = static_cast<std::uint32_t>(*size);
  }
  if (const auto at = section.find("vulkan_library"); at != section.end()) {
    if (const auto* library = std::get_if<std::string>(&at->second)) settings.library = *library;
  }
  return settings;
}

VulkanDriver::VulkanDriver(Settings settings, DriverContext context)
    : settings_(std::move(settings)), context_(std::move(context)) {}

void VulkanDriver::list() {
  if (!entries_.empty()) return;
  const auto fill = [this]() -> Status {
    if (Status status = check_memory_left(memory_to_open); !status.ok()) return status;
    if (Status status = check_threads_left(threads_of_host_driver()); !status.ok()) return status;
    auto api = VulkanApi::open(settings_.library, settings_.validation, context_.log);
    if (!api) return api.error();
    api_ = std::move(*api);
    auto physical = api_->physical_devices();
    if (!physical) return physical.error();
    for (const VkPhysicalDevice each : *physical) {
      PhysicalFacts& facts = entries_.emplace_back(read_facts(*api_, each));
      if (settings_.subgroup == 0) continue;
      facts.subgroup = settings_.subgroup;
      facts.info.simd_lanes = settings_.subgroup;
      facts.info.driver_identity.emplace_back("subgroup_size", std::to_string(settings_.subgroup));
      if (facts.most_subgroups == 0) continue;  // open() refuses it
      std::uint32_t& lanes = facts.info.max_workgroup_lanes;
      lanes = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(lanes, std::uint64_t{settings_.subgroup} * facts.most_subgroups));
      for (std::uint32_t& axis : facts.info.max_workgroup) axis = std::min(axis, lanes);
    }
    if (entries_.empty()) return unavailable(settings_.library + " lists no device");
    std::ranges::stable_sort(entries_, {}, [](const PhysicalFacts& facts) { return rank(facts.info.kind); });
    return {};
  };
  if (const Status status = fill(); !status.ok()) {
    entries_.assign(1, unusable(status.message));
    api_ = nullptr;
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) entries_[i].info.id = "vulkan:" + std::to_string(i);
}

std::vector<DeviceInfo> VulkanDriver::enumerate() {
  const std::lock_guard lock(mutex_);
  list();
  std::vector<DeviceInfo> infos;
  for (const PhysicalFacts& entry : entries_) infos.push_back(entry.info);
  return infos;
}

Result<std::unique_ptr<Device>> VulkanDriver::open(std::string_view id) noexcept try {
  const std::lock_guard lock(mutex_);
  list();
  std::string known;
  for (PhysicalFacts& entry : entries_) {
    if (entry.info.id != id) {
      known += (known.empty() ? "" : ", ") + entry.info.id;
      continue;
    }
    if (!entry.info.usable) return unavailable(entry.info.id + ": " + entry.info.why_not);
    auto device = VulkanDevice::open(api_, entry, context_);
    if (!device) return unavailable(entry.info.id + ": " + device.error().message);
    entry.info = (*device)->info();
    return std::unique_ptr<Device>(std::move(*device));
  }
  return not_found("device '" + std::string(id) + "': expected one of " + known);
} catch (...) {
  return caught();
}

}  // namespace kiln::vulkan

namespace {

kiln::Result<std::unique_ptr<kiln::Driver>> make_driver(const kiln::DriverContext& context) {
  if (context.counters == nullptr) return kiln::invalid_argument("driver 'vulkan': the context has no work counters");
  return std::unique_ptr<kiln::Driver>(
      std::make_unique<kiln::vulkan::VulkanDriver>(kiln::vulkan::read_settings(context.settings), context));
}

kiln::Status register_vulkan(kiln::Registry& registry, const kiln::PluginContext& context) {
  if (kiln::Status keys = registry.add_config_keys(context.name, kiln::vulkan::setting_keys()); !keys.ok()) return keys;
  return registry.add_driver(context.name, "vulkan", make_driver);
}

}  // namespace

KILN_PLUGIN("vulkan", "0.1.0", register_vulkan);
