// DrmDevice: a render node opened through libdrm_amdgpu, shared by all that was made of it.
//
// Thread-safety: immutable; libdrm locks what it shares. Ownership: closes the device and its descriptor when the last
// of its holders goes.
#pragma once

#include <amdgpu.h>
#include <kiln/buffer.hpp>
#include <kiln/status.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace kiln::amdgpu_pm4 {

class DrmDevice {
 public:
  // REQUIRES: the node's kernel driver is amdgpu (libdrm_amdgpu prints where it is another).
  static Result<std::shared_ptr<const DrmDevice>> open(const std::string& path);
  DrmDevice(const DrmDevice&) = delete;
  DrmDevice& operator=(const DrmDevice&) = delete;
  ~DrmDevice();

  amdgpu_device_handle get() const noexcept { return handle_; }
  const std::string& path() const noexcept { return path_; }
  std::uint32_t interface_major() const noexcept { return major_; }
  std::uint32_t interface_minor() const noexcept { return minor_; }
  // The Status of what libdrm answered, with the node's path and `call` in its message.
  Status check(int error, std::string_view call) const;

 private:
  DrmDevice(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  UniqueFd fd_;
  std::string path_;
  amdgpu_device_handle handle_ = nullptr;
  std::uint32_t major_ = 0;
  std::uint32_t minor_ = 0;
};

}  // namespace kiln::amdgpu_pm4
