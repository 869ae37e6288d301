// Contexts and timelines of a render node.
#pragma once

#include <amdgpu.h>

#include "amdgpu_pm4/winsys/drm_winsys.hpp"
#include "amdgpu_pm4/winsys/winsys.hpp"

namespace kiln::amdgpu_pm4 {

// DrmContext: a submission context of the kernel driver, on the compute rings.
//
// Thread-safety and ownership: see Context. Keeps its device alive.
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

// DrmTimeline: a timeline sync object of the kernel.
//
// Thread-safety and ownership: see Timeline. Keeps its device alive.
class DrmTimeline final : public Timeline {
 public:
  static Result<std::unique_ptr<Timeline>> create(std::shared_ptr<const DrmDevice> device);
  ~DrmTimeline() override;

  std::uint32_t handle() const noexcept override { return handle_; }
  Status wait(std::uint64_t point, Deadline deadline) noexcept override;
  Result<std::uint64_t> passed() noexcept override;
  Status signal(std::uint64_t point) noexcept override;
  Result<UniqueFd> export_sync_file(std::uint64_t point) noexcept override;
  Status import_sync_file(std::uint64_t point, int fd) noexcept override;

 private:
  DrmTimeline(std::shared_ptr<const DrmDevice> device, std::uint32_t handle)
      : device_(std::move(device)), handle_(handle) {}

  std::shared_ptr<const DrmDevice> device_;
  std::uint32_t handle_;
};

}  // namespace kiln::amdgpu_pm4
