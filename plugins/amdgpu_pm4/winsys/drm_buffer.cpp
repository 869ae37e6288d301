#include "amdgpu_pm4/winsys/drm_buffer.hpp"

#include <libdrm/amdgpu_drm.h>

#include <algorithm>
#include <limits>
#include <string>

namespace kiln::amdgpu_pm4 {
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
    return invalid_argument(buffer->device_->path() + ": " + call + ": it has " + std::to_string(found.alloc_size) +
                            " bytes, expected at least one page");
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
