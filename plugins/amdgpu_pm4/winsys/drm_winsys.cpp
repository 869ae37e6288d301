#include "amdgpu_pm4/winsys/drm_winsys.hpp"

#include <fcntl.h>
#include <libdrm/amdgpu_drm.h>
#include <xf86drm.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include <kiln/buffer.hpp>
#include <kiln/elf_notes.hpp>

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
  if (facts->compute.rings == 0) return unsupported(path + ": the kernel driver provides no compute ring");
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

std::string library_identity(const void* function) {
  const auto library = library_holding(function);
  if (!library) return "unknown";
  const std::string name = library->path.substr(library->path.rfind('/') + 1);
  return library->build_id.empty() ? name : name + " build-id " + library->build_id;
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
  if (version == nullptr) return unavailable(node.path + ": driver version cannot be read: " + words_for(errno));
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

namespace {

constexpr std::uint64_t page_bytes = 4096;

std::uint32_t domains_of(Heap heap) {
  switch (heap) {
    case Heap::vram:
      return AMDGPU_GEM_DOMAIN_VRAM;
    case Heap::gtt:
      return AMDGPU_GEM_DOMAIN_GTT;
    case Heap::vram_or_gtt:
      return AMDGPU_GEM_DOMAIN_VRAM | AMDGPU_GEM_DOMAIN_GTT;
    case Heap::invalid:
      break;
  }
  return 0;
}

std::uint64_t flags_of(const Placement& placement) {
  if (placement.host == HostMapping::none) return AMDGPU_GEM_CREATE_NO_CPU_ACCESS;
  std::uint64_t flags = AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED;
  if (placement.host == HostMapping::write_combined && placement.heap != Heap::vram) {
    flags |= AMDGPU_GEM_CREATE_CPU_GTT_USWC;
  }
  return flags;
}

std::uint64_t page_flags_of(GpuAccess access) {
  switch (access) {
    case GpuAccess::read:
      return AMDGPU_VM_PAGE_READABLE;
    case GpuAccess::read_write:
      return AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE;
    case GpuAccess::read_execute:
      return AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_EXECUTABLE;
    case GpuAccess::invalid:
      break;
  }
  return 0;
}

}  // namespace

Result<std::unique_ptr<BufferObject>> DrmBuffer::create(std::shared_ptr<const DrmDevice> device,
                                                        const BufferRequest& request, std::uint64_t fragment_bytes) {
  const std::string call = "amdgpu_bo_alloc of " + std::to_string(request.bytes) + " bytes";
  if (request.bytes > std::numeric_limits<std::uint64_t>::max() - page_bytes) {
    return invalid_argument(device->path() + ": " + call);
  }
  const std::uint64_t bytes = (request.bytes + page_bytes - 1) / page_bytes * page_bytes;
  std::unique_ptr<DrmBuffer> buffer(new DrmBuffer(std::move(device), bytes, request.access));
  std::uint64_t alignment = std::max(request.alignment, page_bytes);
  if (fragment_bytes != 0 && bytes >= fragment_bytes) alignment = std::max(alignment, fragment_bytes);
  amdgpu_bo_alloc_request wanted{};
  wanted.alloc_size = bytes;
  wanted.phys_alignment = alignment;
  wanted.preferred_heap = domains_of(request.placement.heap);
  wanted.flags = flags_of(request.placement);
  const int error = amdgpu_bo_alloc(buffer->device_->get(), &wanted, &buffer->object_);
  if (Status status = buffer->device_->check(error, call); !status.ok()) {
    buffer->object_ = nullptr;
    return status;
  }
  if (Status status = buffer->place(alignment); !status.ok()) return status;
  if (request.placement.host != HostMapping::none) {
    if (Status status = buffer->map_for_host(); !status.ok()) return status;
  }
  return std::unique_ptr<BufferObject>(std::move(buffer));
}

Result<std::unique_ptr<BufferObject>> DrmBuffer::import(std::shared_ptr<const DrmDevice> device, int fd,
                                                        GpuAccess access) {
  amdgpu_bo_import_result found{};
  const int error =
      amdgpu_bo_import(device->get(), amdgpu_bo_handle_type_dma_buf_fd, static_cast<std::uint32_t>(fd), &found);
  const std::string call = "amdgpu_bo_import of descriptor " + std::to_string(fd);
  if (Status status = device->check(error, call); !status.ok()) return status;
  const std::uint64_t bytes = found.alloc_size / page_bytes * page_bytes;
  std::unique_ptr<DrmBuffer> buffer(new DrmBuffer(std::move(device), bytes, access));
  buffer->object_ = found.buf_handle;
  if (bytes == 0) {
    return invalid_argument(buffer->device_->path() + ": " + call + ": buffer has " + std::to_string(found.alloc_size) +
                            " bytes, expected at least " + std::to_string(page_bytes));
  }
  if (Status status = buffer->place(page_bytes); !status.ok()) return status;
  // Another driver's memory may have no mapping for the host: the buffer serves without one.
  (void)buffer->map_for_host();
  return std::unique_ptr<BufferObject>(std::move(buffer));
}

Status DrmBuffer::place(std::uint64_t alignment) {
  int error = amdgpu_bo_export(object_, amdgpu_bo_handle_type_kms, &kernel_handle_);
  if (Status status = device_->check(error, "amdgpu_bo_export (its handle)"); !status.ok()) return status;
  error =
      amdgpu_va_range_alloc(device_->get(), amdgpu_gpu_va_range_general, bytes_, alignment, 0, &address_, &range_, 0);
  if (Status status = device_->check(error, "amdgpu_va_range_alloc"); !status.ok()) {
    range_ = nullptr;
    return status;
  }
  error = amdgpu_bo_va_op_raw(device_->get(), object_, 0, bytes_, address_, page_flags_of(access_), AMDGPU_VA_OP_MAP);
  if (Status status = device_->check(error, "amdgpu_bo_va_op_raw (map)"); !status.ok()) return status;
  in_page_table_ = true;
  return {};
}

Status DrmBuffer::map_for_host() {
  const int error = amdgpu_bo_cpu_map(object_, &memory_);
  if (error != 0) memory_ = nullptr;
  return device_->check(error, "amdgpu_bo_cpu_map of " + std::to_string(bytes_) + " bytes");
}

DrmBuffer::~DrmBuffer() {
  if (memory_ != nullptr) amdgpu_bo_cpu_unmap(object_);
  if (in_page_table_) amdgpu_bo_va_op_raw(device_->get(), object_, 0, bytes_, address_, 0, AMDGPU_VA_OP_UNMAP);
  if (range_ != nullptr) amdgpu_va_range_free(range_);
  if (object_ != nullptr) amdgpu_bo_free(object_);
}

std::span<std::byte> DrmBuffer::mapped() noexcept {
  if (memory_ == nullptr) return {};
  return {static_cast<std::byte*>(memory_), static_cast<std::size_t>(bytes_)};
}

Result<UniqueFd> DrmBuffer::export_fd() noexcept {
  std::uint32_t fd = 0;
  const int error = amdgpu_bo_export(object_, amdgpu_bo_handle_type_dma_buf_fd, &fd);
  if (Status status = device_->check(error, "amdgpu_bo_export (a dma-buf)"); !status.ok()) return status;
  return UniqueFd(static_cast<int>(fd));
}

}  // namespace kiln::amdgpu_pm4
