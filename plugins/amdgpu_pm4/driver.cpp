#include "amdgpu_pm4/driver.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "amdgpu_pm4/device/device.hpp"
#include "amdgpu_pm4/winsys/chip.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

constexpr std::uint16_t amd_vendor = 0x1002;

std::string pci_name(const RenderNode& node) {
  std::array<char, 16> id{};
  std::snprintf(id.data(), id.size(), "%04x:%04x", node.vendor, node.device);
  return "AMD device " + std::string(id.data()) + " at " + node.bus;
}

std::string physical_id_of(const RenderNode& node) { return "pci:" + node.bus; }  // as the OpenGL plugin has it

std::string id_of(std::size_t index) { return "amdgpu:" + std::to_string(index); }

DeviceInfo no_device(std::string why_not) {
  DeviceInfo info;
  info.id = id_of(0);
  info.kind = DeviceKind::gpu;
  info.name = "none";
  info.driver = "none";
  info.why_not = std::move(why_not);
  return info;
}

// Whether work may be given to the node, before it is opened for it. unsupported: never by this version and these
// settings.
Status may_open(const RenderNode& node, const NodeVersion& version, Hardware hardware) {
  if (version.name != "amdgpu") {
    return unsupported(node.path + ": kernel driver is " + version.name + ", expected amdgpu");
  }
  if (is_simulated(version) || hardware == Hardware::opted_in) return {};
  return unsupported(
      node.path +
      ": the plugin does not use real hardware, because it is tested only in simulation. To allow it, set "
      "[plugin.amdgpu_pm4] hardware = true");
}

}  // namespace

Hardware hardware_of(const PluginSettings& settings) {
  const auto at = settings.find("hardware");
  const bool* chosen = at == settings.end() ? nullptr : std::get_if<bool>(&at->second);
  return chosen != nullptr && *chosen ? Hardware::opted_in : Hardware::untouched;
}

AmdgpuDriver::AmdgpuDriver(NodeSource nodes, std::function<Compiler()> make_compiler, DriverContext context)
    : nodes_(std::move(nodes)),
      make_compiler_(std::move(make_compiler)),
      context_(std::move(context)),
      hardware_(hardware_of(context_.settings)) {}

Result<std::vector<RenderNode>> AmdgpuDriver::amd_nodes() const {
  auto nodes = nodes_.list();
  if (!nodes) return unavailable("the render nodes cannot be listed: " + nodes.error().message);
  std::erase_if(*nodes, [](const RenderNode& node) { return node.vendor != amd_vendor; });
  std::sort(nodes->begin(), nodes->end(), [](const RenderNode& a, const RenderNode& b) {
    return a.path.size() != b.path.size() ? a.path.size() < b.path.size()
                                          : a.path < b.path;  // renderD99 before renderD128
  });
  if (nodes->empty()) {
    context_.log.write(LogLevel::info, "amdgpu_pm4", "no AMD render node");
    return unavailable("no AMD render node: /dev/dri has no device with vendor 0x1002");
  }
  return nodes;
}

DeviceInfo AmdgpuDriver::describe(const RenderNode& node) const {
  DeviceInfo info;
  info.kind = DeviceKind::gpu;
  info.driver = "unknown";
  const auto fill = [&](std::string why_not) {
    if (info.name.empty()) info.name = pci_name(node);
    info.physical_id = physical_id_of(node);
    info.usable = why_not.empty();
    info.why_not = std::move(why_not);
    return info;
  };
  const auto version = nodes_.version(node);
  if (!version) return fill(version.error().message);
  info.driver = driver_words(*version);
  if (is_simulated(*version)) info.kind = DeviceKind::simulated;
  if (Status status = may_open(node, *version, hardware_); !status.ok()) return fill(std::move(status.message));
  const auto winsys = nodes_.open(node);
  if (!winsys) return fill(winsys.error().message);
  const NodeFacts& facts = (*winsys)->facts();
  const auto chip = identify_chip(facts.family, facts.external_revision);
  if (!chip) {
    if (!facts.marketing_name.empty()) info.name = facts.marketing_name;
    return fill(node.path + ": " + chip.error().message);
  }
  info = describe_device(*version, facts, *chip, {});
  // Complete once it is opened, when its compiler is known.
  info.device_identity.clear();
  info.driver_identity.clear();
  return fill({});
}

std::vector<DeviceInfo> AmdgpuDriver::enumerate() {
  const auto nodes = amd_nodes();
  if (!nodes) return {no_device(nodes.error().message)};
  std::vector<DeviceInfo> devices;
  for (const RenderNode& node : *nodes) {
    devices.push_back(describe(node));
    devices.back().id = id_of(devices.size() - 1);
  }
  return devices;
}

Result<std::unique_ptr<Device>> AmdgpuDriver::open(std::string_view id) noexcept try {
  const auto nodes = amd_nodes();
  if (!nodes) {
    return id == id_of(0) ? Status(nodes.error()).within(id)
                          : not_found("device '" + std::string(id) + "' does not exist: " + nodes.error().message);
  }
  std::string there;
  for (std::size_t i = 0; i < nodes->size(); ++i) {
    const RenderNode& node = (*nodes)[i];
    if (id != id_of(i)) {
      there += (there.empty() ? "" : ", ") + id_of(i);
      continue;
    }
    auto version = nodes_.version(node);
    if (!version) return Status(version.error()).within(id);
    if (Status status = may_open(node, *version, hardware_); !status.ok()) return status.within(id);
    auto winsys = nodes_.open(node);
    if (!winsys) return Status(winsys.error()).within(id);
    DeviceParts parts;
    parts.id = id_of(i);
    parts.physical_id = physical_id_of(node);
    parts.version = std::move(version).value();
    parts.winsys = std::move(winsys).value();
    parts.compiler = make_compiler_();
    parts.log = context_.log;
    parts.counters = context_.counters;
    parts.notes = context_.notes;
    auto device = Pm4Device::open(std::move(parts));
    if (!device) return Status(device.error()).within(id);
    return device;
  }
  return not_found("device '" + std::string(id) + "': expected one of " + there);
} catch (...) {
  return caught();
}

}  // namespace kiln::amdgpu_pm4
