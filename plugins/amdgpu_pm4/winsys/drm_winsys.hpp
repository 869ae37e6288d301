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

// DrmBuffer: a buffer object of libdrm_amdgpu with its place in the GPU's address space and its mapping for the host.
//
// Thread-safety and ownership: see BufferObject. Keeps its device alive.

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

// Contexts and timelines of a render node.

// DrmContext: a submission context of the kernel driver, on the compute rings.
//
// Thread-safety and ownership: see Context. Keeps its device alive.
class DrmContext final : public Context {
 public:
  static Result<std::unique_ptr<Context>> create(std::shared_ptr<const DrmDevice> device, Priority priority);
  ~DrmContext() override;

  Result<std::uint64_t> submit(const CommandSubmission& submission) noexcept override;
  Outcome outcome(std::uint64_t submission, std::uint32_t ring, Deadline deadline) noexcept override;
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
