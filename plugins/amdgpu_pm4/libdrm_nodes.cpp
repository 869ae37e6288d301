#include "amdgpu_pm4/libdrm_nodes.hpp"

#include <fcntl.h>
#include <xf86drm.h>
#include <kiln/buffer.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include "amdgpu_pm4/winsys/drm/drm_winsys.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

std::string words_for(int error) { return std::generic_category().message(error); }

Result<UniqueFd> open_node(const RenderNode& node) {
  UniqueFd fd(::open(node.path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return unavailable(node.path + ": cannot be opened: " + words_for(errno));
  return fd;
}

std::string bus_of(const drmPciBusInfo& bus) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.%x", bus.domain, bus.bus, bus.dev, bus.func);
  return text.data();
}

Result<std::vector<RenderNode>> list_nodes() {
  const int count = drmGetDevices2(0, nullptr, 0);
  if (count == -ENOENT) return std::vector<RenderNode>();  // no /dev/dri
  if (count < 0) return io_error("drmGetDevices2: " + words_for(-count));
  std::vector<drmDevicePtr> devices(static_cast<std::size_t>(count));
  const int found = drmGetDevices2(0, devices.data(), count);
  if (found < 0) return io_error("drmGetDevices2: " + words_for(-found));
  std::vector<RenderNode> nodes;
  for (int i = 0; i < std::min(found, count); ++i) {
    const drmDevice& device = *devices[static_cast<std::size_t>(i)];
    if (device.bustype != DRM_BUS_PCI || (device.available_nodes & (1 << DRM_NODE_RENDER)) == 0) continue;
    nodes.push_back({device.nodes[DRM_NODE_RENDER], device.deviceinfo.pci->vendor_id, device.deviceinfo.pci->device_id,
                     bus_of(*device.businfo.pci)});
  }
  drmFreeDevices(devices.data(), std::min(found, count));
  return nodes;
}

Result<NodeVersion> version_of(const RenderNode& node) {
  const auto fd = open_node(node);
  if (!fd) return fd.error();
  const std::unique_ptr<drmVersion, decltype(&drmFreeVersion)> version(drmGetVersion(fd->get()), &drmFreeVersion);
  if (version == nullptr) return unavailable(node.path + ": tells no driver version: " + words_for(errno));
  const auto text = [](const char* from, int length) {
    return from == nullptr ? std::string() : std::string(from, static_cast<std::size_t>(std::max(length, 0)));
  };
  return NodeVersion{text(version->name, version->name_len),
                     std::to_string(version->version_major) + "." + std::to_string(version->version_minor) + "." +
                         std::to_string(version->version_patchlevel),
                     text(version->desc, version->desc_len)};
}

Result<std::unique_ptr<Winsys>> open_winsys(const RenderNode& node) { return DrmWinsys::open(node.path); }

}  // namespace

NodeSource libdrm_nodes() { return {&list_nodes, &version_of, &open_winsys}; }

}  // namespace kiln::amdgpu_pm4
