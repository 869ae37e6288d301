#include "amdgpu_pm4/winsys/drm/drm_device.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "amdgpu_pm4/winsys/errors.hpp"

namespace kiln::amdgpu_pm4 {

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

}  // namespace kiln::amdgpu_pm4
