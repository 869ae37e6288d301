// DrmWinsys: a render node of this system through unmodified libdrm_amdgpu.
//
// Thread-safety and ownership: see Winsys; what it made may outlive it, for each keeps the opened device.
#pragma once

#include "amdgpu_pm4/winsys/drm/drm_device.hpp"
#include "amdgpu_pm4/winsys/winsys.hpp"

namespace kiln::amdgpu_pm4 {

class DrmWinsys final : public Winsys {
 public:
  // REQUIRES: the node's kernel driver is amdgpu.
  static Result<std::unique_ptr<Winsys>> open(const std::string& path);

  const NodeFacts& facts() const noexcept override { return facts_; }
  Result<std::unique_ptr<BufferObject>> create_buffer(const BufferRequest& request) noexcept override;
  Result<std::unique_ptr<BufferObject>> import_buffer(int fd, GpuAccess access) noexcept override;
  Result<std::unique_ptr<Context>> create_context(Priority priority) noexcept override;
  Result<std::unique_ptr<Timeline>> create_timeline() noexcept override;
  Result<std::uint64_t> counter() noexcept override;
  Result<std::uint32_t> vram_losses() noexcept override;

 private:
  DrmWinsys(std::shared_ptr<const DrmDevice> device, NodeFacts facts)
      : device_(std::move(device)), facts_(std::move(facts)) {}

  std::shared_ptr<const DrmDevice> device_;
  const NodeFacts facts_;
};

}  // namespace kiln::amdgpu_pm4
