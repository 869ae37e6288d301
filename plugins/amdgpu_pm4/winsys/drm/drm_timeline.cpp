#include "amdgpu_pm4/winsys/drm/drm_timeline.hpp"

#include <amdgpu.h>

#include <string>

#include "amdgpu_pm4/winsys/drm/monotonic.hpp"

namespace kiln::amdgpu_pm4 {

Result<std::unique_ptr<Timeline>> DrmTimeline::create(std::shared_ptr<const DrmDevice> device) {
  std::uint32_t handle = 0;
  const int error = amdgpu_cs_create_syncobj2(device->get(), 0, &handle);
  if (Status status = device->check(error, "amdgpu_cs_create_syncobj2"); !status.ok()) return status;
  return std::unique_ptr<Timeline>(new DrmTimeline(std::move(device), handle));
}

DrmTimeline::~DrmTimeline() { amdgpu_cs_destroy_syncobj(device_->get(), handle_); }

Status DrmTimeline::wait(std::uint64_t point, Deadline deadline) noexcept {
  std::uint32_t handle = handle_;
  const int error =
      amdgpu_cs_syncobj_timeline_wait(device_->get(), &handle, &point, 1, monotonic_ns(deadline), 0, nullptr);
  return device_->check(error, "waiting for point " + std::to_string(point));
}

Result<std::uint64_t> DrmTimeline::passed() noexcept {
  std::uint32_t handle = handle_;
  std::uint64_t point = 0;
  const int error = amdgpu_cs_syncobj_query(device_->get(), &handle, &point, 1);
  if (Status status = device_->check(error, "amdgpu_cs_syncobj_query"); !status.ok()) return status;
  return point;
}

Status DrmTimeline::signal(std::uint64_t point) noexcept {
  const std::uint32_t handle = handle_;
  const int error = amdgpu_cs_syncobj_timeline_signal(device_->get(), &handle, &point, 1);
  return device_->check(error, "signalling point " + std::to_string(point));
}

Result<UniqueFd> DrmTimeline::export_sync_file(std::uint64_t point) noexcept {
  int fd = -1;
  const int error = amdgpu_cs_syncobj_export_sync_file2(device_->get(), handle_, point, 0, &fd);
  if (Status status = device_->check(error, "exporting point " + std::to_string(point) + " as a sync_file");
      !status.ok()) {
    return status;
  }
  return UniqueFd(fd);
}

Status DrmTimeline::import_sync_file(std::uint64_t point, int fd) noexcept {
  const int error = amdgpu_cs_syncobj_import_sync_file2(device_->get(), handle_, point, fd);
  return device_->check(error, "importing descriptor " + std::to_string(fd) + " as point " + std::to_string(point));
}

}  // namespace kiln::amdgpu_pm4
