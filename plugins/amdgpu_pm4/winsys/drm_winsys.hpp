// The winsys of this system through unmodified libdrm_amdgpu.
#pragma once

#include <amdgpu.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <kiln/buffer.hpp>
#include <kiln/clock.hpp>
#include <kiln/status.hpp>

#include "amdgpu_pm4/winsys/winsys.hpp"

namespace kiln::amdgpu_pm4 {

// DrmDevice: a render node opened through libdrm_amdgpu, shared by all that was made of it.
//
// Thread-safety: immutable; libdrm locks what it shares. Ownership: closes the device and its descriptor when the last
// of its holders goes.
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

// DrmWinsys: a render node of this system through unmodified libdrm_amdgpu.
//
// Thread-safety and ownership: see Winsys; what it made may outlive it, for each keeps the opened device.
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

// Which build of a shared library is loaded, for the identity of what it serves.
//
// Thread-safety: a pure function of the process. Ownership: values.

// "libdrm_amdgpu.so.1 build-id 4f…"; without a build-id the file's name alone; "unknown" where no library holds that
// function.
std::string library_identity(const void* function);

// Deadlines as the kernel interface takes them: absolute nanoseconds of CLOCK_MONOTONIC, which is Kiln's clock.
//
// Thread-safety: a pure function. Ownership: none.

// INT64_MAX, which means for ever, where there is no deadline.
inline std::int64_t monotonic_ns(Deadline deadline) noexcept {
  const auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline.at.time_since_epoch()).count();
  return std::max<std::int64_t>(since, 0);
}

}  // namespace kiln::amdgpu_pm4
