#include "amdgpu_pm4/driver.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace kiln::amdgpu_pm4 {
namespace {

constexpr std::uint16_t amd_vendor = 0x1002;
constexpr std::string_view simulated_mark = "kiln-simulated";
constexpr std::string_view runs_nothing =
    "this version of the plugin enumerates AMD devices but does not run kernels yet";

std::string pci_name(const RenderNode& node) {
  std::array<char, 16> id{};
  std::snprintf(id.data(), id.size(), "%04x:%04x", node.vendor, node.device);
  return "AMD device " + std::string(id.data()) + " at " + node.bus;
}

DeviceInfo no_device(std::string why_not) {
  DeviceInfo info;
  info.id = "amdgpu:0";
  info.kind = DeviceKind::gpu;
  info.name = "none";
  info.driver = "none";
  info.why_not = std::move(why_not);
  return info;
}

std::string name_of(const RenderNode& node, const GpuFacts& facts) {
  return (facts.marketing_name.empty() ? pci_name(node) : facts.marketing_name) + " (family " +
         std::to_string(facts.family) + ", revision " + std::to_string(facts.external_revision) + ", " +
         std::to_string(facts.compute_units) + " compute units)";
}

}  // namespace

Hardware hardware_of(const PluginSettings& settings) {
  const auto at = settings.find("hardware");
  const bool* chosen = at == settings.end() ? nullptr : std::get_if<bool>(&at->second);
  return chosen != nullptr && *chosen ? Hardware::opted_in : Hardware::untouched;
}

AmdgpuDriver::AmdgpuDriver(NodeSource nodes, Hardware hardware, Log log)
    : nodes_(std::move(nodes)), hardware_(hardware), log_(log) {}

DeviceInfo AmdgpuDriver::describe(const RenderNode& node) const {
  DeviceInfo info;
  info.kind = DeviceKind::gpu;
  info.name = pci_name(node);
  info.physical_id = "pci:" + node.bus;  // as the OpenGL plugin has it from sysfs
  info.driver = "unknown";
  const auto version = nodes_.version(node);
  if (!version) {
    info.why_not = version.error().message;
    return info;
  }
  info.driver = version->name + " " + version->number + " (" + version->description + ")";
  if (version->name != "amdgpu") {
    info.why_not = node.path + ": its kernel driver is " + version->name + ", expected amdgpu";
    return info;
  }
  if (version->description.find(simulated_mark) != std::string::npos) info.kind = DeviceKind::simulated;
  info.why_not = runs_nothing;
  if (info.kind == DeviceKind::gpu && hardware_ == Hardware::untouched) return info;
  const auto facts = nodes_.query(node);
  if (facts) {
    info.name = name_of(node, *facts);
  } else {
    info.why_not = facts.error().message;
  }
  return info;
}

std::vector<DeviceInfo> AmdgpuDriver::enumerate() noexcept {
  auto nodes = nodes_.list();
  if (!nodes) return {no_device("the render nodes cannot be listed: " + nodes.error().message)};
  std::erase_if(*nodes, [](const RenderNode& node) { return node.vendor != amd_vendor; });
  std::sort(nodes->begin(), nodes->end(), [](const RenderNode& a, const RenderNode& b) {
    return a.path.size() != b.path.size() ? a.path.size() < b.path.size()
                                          : a.path < b.path;  // renderD99 before renderD128
  });
  if (nodes->empty()) {
    log_.write(LogLevel::info, "amdgpu_pm4", "no AMD render node");
    return {no_device("no AMD render node: /dev/dri has no device with vendor 0x1002")};
  }
  std::vector<DeviceInfo> devices;
  for (const RenderNode& node : *nodes) {
    devices.push_back(describe(node));
    devices.back().id = "amdgpu:" + std::to_string(devices.size() - 1);
  }
  return devices;
}

Result<std::unique_ptr<Device>> AmdgpuDriver::open(std::string_view id) noexcept {
  std::string there;
  for (const DeviceInfo& info : enumerate()) {
    if (info.id == id) {
      const std::string message = info.id + ": " + info.why_not;
      return info.why_not == runs_nothing ? unsupported(message) : unavailable(message);
    }
    there += (there.empty() ? "" : ", ") + info.id;
  }
  return not_found("device '" + std::string(id) + "': there is " + there);
}

}  // namespace kiln::amdgpu_pm4
