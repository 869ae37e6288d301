#include "amdgpu_pm4/winsys/drm/drm_winsys.hpp"

#include <libdrm/amdgpu_drm.h>

#include "amdgpu_pm4/winsys/drm/drm_buffer.hpp"
#include "amdgpu_pm4/winsys/drm/drm_context.hpp"
#include "amdgpu_pm4/winsys/drm/drm_timeline.hpp"
#include "amdgpu_pm4/winsys/drm/library_identity.hpp"

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

}  // namespace kiln::amdgpu_pm4
