#include "amdgpu_pm4/winsys/drm_winsys.hpp"

#include <elf.h>
#include <fcntl.h>
#include <libdrm/amdgpu_drm.h>
#include <link.h>
#include <xf86drm.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <system_error>

#include <kiln/buffer.hpp>

#include "amdgpu_pm4/winsys/drm_buffer.hpp"
#include "amdgpu_pm4/winsys/drm_context.hpp"
#include "amdgpu_pm4/winsys/winsys.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

template <class T>
Status query(const DrmDevice& device, unsigned what, const char* name, T& into) {
  return device.check(amdgpu_query_info(device.get(), what, sizeof into, &into), name);
}

Result<NodeFacts> read_facts(const DrmDevice& device) {
  drm_amdgpu_info_device chip{};
  drm_amdgpu_memory_info memory{};
  drm_amdgpu_info_hw_ip compute{};
  if (Status status = query(device, AMDGPU_INFO_DEV_INFO, "the query DEV_INFO", chip); !status.ok()) return status;
  if (Status status = query(device, AMDGPU_INFO_MEMORY, "the query MEMORY", memory); !status.ok()) return status;
  const int error = amdgpu_query_hw_ip_info(device.get(), AMDGPU_HW_IP_COMPUTE, 0, &compute);
  if (Status status = device.check(error, "the query HW_IP_INFO of COMPUTE"); !status.ok()) return status;
  const char* name = amdgpu_get_marketing_name(device.get());
  NodeFacts facts;
  facts.path = device.path();
  facts.marketing_name = name == nullptr ? "" : name;
  facts.family = chip.family;
  facts.external_revision = chip.external_rev;
  facts.device_id = chip.device_id;
  facts.pci_revision = chip.pci_rev;
  facts.interface_major = device.interface_major();
  facts.interface_minor = device.interface_minor();
  facts.library = library_identity(reinterpret_cast<const void*>(&amdgpu_device_initialize));
  facts.shader_engines = chip.num_shader_engines;
  facts.arrays_per_engine = chip.num_shader_arrays_per_engine;
  facts.compute_units = chip.cu_active_number;
  facts.engine_khz = chip.max_engine_clock;
  facts.counter_khz = chip.gpu_counter_freq;
  facts.address_alignment = chip.virtual_address_alignment;
  facts.fragment_bytes = chip.pte_fragment_size;
  facts.memory = {memory.vram.total_heap_size, memory.cpu_accessible_vram.total_heap_size, memory.gtt.total_heap_size,
                  memory.vram.max_allocation, memory.gtt.max_allocation};
  facts.compute = {compute.available_rings, compute.ib_start_alignment, compute.ib_size_alignment};
  return facts;
}

}  // namespace

Result<std::unique_ptr<Winsys>> DrmWinsys::open(const std::string& path) {
  auto device = DrmDevice::open(path);
  if (!device) return device.error();
  auto facts = read_facts(**device);
  if (!facts) return facts.error();
  if (facts->compute.rings == 0) return unsupported(path + ": the kernel driver offers no compute ring");
  return std::unique_ptr<Winsys>(new DrmWinsys(std::move(device).value(), std::move(facts).value()));
}

Result<std::unique_ptr<BufferObject>> DrmWinsys::create_buffer(const BufferRequest& request) noexcept {
  return DrmBuffer::create(device_, request, facts_.fragment_bytes);
}

Result<std::unique_ptr<BufferObject>> DrmWinsys::import_buffer(int fd, GpuAccess access) noexcept {
  return DrmBuffer::import(device_, fd, access);
}

Result<std::unique_ptr<Context>> DrmWinsys::create_context(Priority priority) noexcept {
  return DrmContext::create(device_, priority);
}

Result<std::unique_ptr<Timeline>> DrmWinsys::create_timeline() noexcept { return DrmTimeline::create(device_); }

Result<std::uint64_t> DrmWinsys::counter() noexcept {
  std::uint64_t value = 0;
  if (Status status = query(*device_, AMDGPU_INFO_TIMESTAMP, "the query TIMESTAMP", value); !status.ok()) return status;
  return value;
}

Result<std::uint32_t> DrmWinsys::vram_losses() noexcept {
  std::uint32_t value = 0;
  if (Status status = query(*device_, AMDGPU_INFO_VRAM_LOST_COUNTER, "the query VRAM_LOST_COUNTER", value);
      !status.ok()) {
    return status;
  }
  return value;
}

Result<std::shared_ptr<const DrmDevice>> DrmDevice::open(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return unavailable(path + ": cannot be opened: " + std::generic_category().message(errno));
  std::shared_ptr<DrmDevice> device(new DrmDevice(std::move(fd), path));
  const int error = amdgpu_device_initialize(device->fd_.get(), &device->major_, &device->minor_, &device->handle_);
  if (error != 0) {
    device->handle_ = nullptr;
    return unavailable(path + ": amdgpu_device_initialize: " + std::generic_category().message(std::abs(error)));
  }
  return std::shared_ptr<const DrmDevice>(std::move(device));
}

DrmDevice::~DrmDevice() {
  if (handle_ != nullptr) amdgpu_device_deinitialize(handle_);
}

Status DrmDevice::check(int error, std::string_view call) const {
  if (error == 0) return {};  // without a message to put together: this is on the way of every submission
  return status_of(error, path_ + ": " + std::string(call));
}

namespace {

struct Search {
  std::uintptr_t wanted = 0;
  std::string found;
};

constexpr std::size_t padded(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

// The build-id among the notes of one loaded segment; empty: none.
std::string build_id_in(const std::byte* notes, std::size_t bytes) {
  ElfW(Nhdr) note;
  while (bytes >= sizeof note) {
    std::memcpy(&note, notes, sizeof note);
    const std::size_t name = padded(note.n_namesz), content = padded(note.n_descsz);
    if (name > bytes - sizeof note || content > bytes - sizeof note - name) return {};
    const std::byte* const text = notes + sizeof note;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(text, "GNU", 4) == 0) {
      std::string hex;
      for (std::size_t i = 0; i < note.n_descsz; ++i) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", std::to_integer<unsigned>(text[name + i]));
        hex += digits;
      }
      return hex;
    }
    notes += sizeof note + name + content;
    bytes -= sizeof note + name + content;
  }
  return {};
}

int look_at(dl_phdr_info* info, std::size_t, void* into) {
  auto& search = *static_cast<Search*>(into);
  bool holds = false;
  std::string build_id;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    const std::uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD) holds |= search.wanted - begin < header.p_memsz;
    if (header.p_type == PT_NOTE && build_id.empty()) {
      build_id = build_id_in(reinterpret_cast<const std::byte*>(begin), header.p_memsz);
    }
  }
  if (!holds) return 0;
  const std::string_view path = info->dlpi_name;
  search.found = path.substr(path.rfind('/') + 1);
  if (!build_id.empty()) search.found += " build-id " + build_id;
  return 1;
}

}  // namespace

std::string library_identity(const void* function) {
  Search search;
  search.wanted = reinterpret_cast<std::uintptr_t>(function);
  dl_iterate_phdr(&look_at, &search);
  return search.found.empty() ? "unknown" : search.found;
}

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
