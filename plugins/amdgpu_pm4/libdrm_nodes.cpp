#include "amdgpu_pm4/libdrm_nodes.hpp"

#include <amdgpu.h>
#include <fcntl.h>
#include <xf86drm.h>
#include <kiln/buffer.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

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

Result<NodeVersion> version_behind(int fd, const RenderNode& node) {
  const std::unique_ptr<drmVersion, decltype(&drmFreeVersion)> version(drmGetVersion(fd), &drmFreeVersion);
  if (version == nullptr) return unavailable(node.path + ": tells no driver version: " + words_for(errno));
  const auto text = [](const char* from, int length) {
    return from == nullptr ? std::string() : std::string(from, static_cast<std::size_t>(std::max(length, 0)));
  };
  return NodeVersion{text(version->name, version->name_len),
                     std::to_string(version->version_major) + "." + std::to_string(version->version_minor) + "." +
                         std::to_string(version->version_patchlevel),
                     text(version->desc, version->desc_len)};
}

Result<NodeVersion> version_of(const RenderNode& node) {
  const auto fd = open_node(node);
  if (!fd) return fd.error();
  return version_behind(fd->get(), node);
}

Result<GpuFacts> query_node(const RenderNode& node) {
  const auto fd = open_node(node);
  if (!fd) return fd.error();
  // libdrm_amdgpu prints where it meets a node of another driver.
  const auto version = version_behind(fd->get(), node);
  if (!version) return version.error();
  if (version->name != "amdgpu") return unavailable(node.path + ": driver " + version->name + ", expected amdgpu");
  std::uint32_t major = 0, minor = 0;
  amdgpu_device_handle handle = nullptr;
  if (const int error = amdgpu_device_initialize(fd->get(), &major, &minor, &handle); error != 0) {
    return unavailable(node.path + ": amdgpu_device_initialize: " + words_for(-error));
  }
  const std::unique_ptr<amdgpu_device, decltype(&amdgpu_device_deinitialize)> device(handle,
                                                                                     &amdgpu_device_deinitialize);
  amdgpu_gpu_info info{};
  if (const int error = amdgpu_query_gpu_info(handle, &info); error != 0) {
    return unavailable(node.path + ": amdgpu_query_gpu_info: " + words_for(-error));
  }
  const char* name = amdgpu_get_marketing_name(handle);
  return GpuFacts{name == nullptr ? "" : name, info.family_id, info.chip_external_rev, info.cu_active_number};
}

}  // namespace

NodeSource libdrm_nodes() { return {&list_nodes, &version_of, &query_node}; }

}  // namespace kiln::amdgpu_pm4
