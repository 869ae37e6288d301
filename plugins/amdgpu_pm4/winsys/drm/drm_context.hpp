// DrmContext: a submission context of the kernel driver, on the compute rings.
//
// Thread-safety and ownership: see Context. Keeps its device alive.
#pragma once

#include <amdgpu.h>

#include "amdgpu_pm4/winsys/drm/drm_device.hpp"
#include "amdgpu_pm4/winsys/winsys.hpp"

namespace kiln::amdgpu_pm4 {

class DrmContext final : public Context {
 public:
  static Result<std::unique_ptr<Context>> create(std::shared_ptr<const DrmDevice> device, Priority priority);
  ~DrmContext() override;

  Result<std::uint64_t> submit(const CommandSubmission& submission) noexcept override;
  Status outcome(std::uint64_t submission, std::uint32_t ring, Deadline deadline) noexcept override;
  Result<ResetState> reset_state() noexcept override;

 private:
  DrmContext(std::shared_ptr<const DrmDevice> device, amdgpu_context_handle handle)
      : device_(std::move(device)), handle_(handle) {}

  std::shared_ptr<const DrmDevice> device_;
  amdgpu_context_handle handle_;
};

}  // namespace kiln::amdgpu_pm4
