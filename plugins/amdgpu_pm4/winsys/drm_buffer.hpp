// DrmBuffer: a buffer object of libdrm_amdgpu with its place in the GPU's address space and its mapping for the host.
//
// Thread-safety and ownership: see BufferObject. Keeps its device alive.
#pragma once

#include <amdgpu.h>

#include "amdgpu_pm4/winsys/drm_winsys.hpp"
#include "amdgpu_pm4/winsys/winsys.hpp"

namespace kiln::amdgpu_pm4 {

class DrmBuffer final : public BufferObject {
 public:
  // REQUIRES: request.bytes > 0 and a placement and an access. `fragment_bytes`: NodeFacts::fragment_bytes.
  static Result<std::unique_ptr<BufferObject>> create(std::shared_ptr<const DrmDevice> device,
                                                      const BufferRequest& request, std::uint64_t fragment_bytes);
  static Result<std::unique_ptr<BufferObject>> import(std::shared_ptr<const DrmDevice> device, int fd,
                                                      GpuAccess access);
  ~DrmBuffer() override;

  std::uint64_t address() const noexcept override { return address_; }
  std::uint64_t bytes() const noexcept override { return bytes_; }
  std::uint32_t handle() const noexcept override { return kernel_handle_; }
  GpuAccess access() const noexcept override { return access_; }
  std::span<std::byte> mapped() noexcept override;
  Result<UniqueFd> export_fd() noexcept override;

 private:
  DrmBuffer(std::shared_ptr<const DrmDevice> device, std::uint64_t bytes, GpuAccess access)
      : device_(std::move(device)), bytes_(bytes), access_(access) {}
  Status place(std::uint64_t alignment);
  Status map_for_host();

  std::shared_ptr<const DrmDevice> device_;
  std::uint64_t bytes_;
  GpuAccess access_;
  amdgpu_bo_handle object_ = nullptr;
  amdgpu_va_handle range_ = nullptr;
  bool in_page_table_ = false;
  std::uint64_t address_ = 0;
  std::uint32_t kernel_handle_ = 0;
  void* memory_ = nullptr;
};

}  // namespace kiln::amdgpu_pm4
