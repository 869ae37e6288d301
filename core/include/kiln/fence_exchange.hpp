// FenceExchange: an optional ability of a Device to order its work with that of other drivers, without the host waiting.
//
// A fence is a sync_file: a descriptor of Linux that a driver signals when work ends, and that another driver's queue
// waits for. Vulkan knows it as a semaphore of handle type SYNC_FD, OpenGL as EGL_ANDROID_native_fence_sync, the kernel's
// amdgpu interface as a point of a sync object.
//
// Query a Device for it with dynamic_cast. Memory passes between the devices by BufferDesc::import_fd and
// Buffer::export_fd().
// Thread-safety: every method from any thread. Ownership: the device's; descriptors as the methods say.
//
//   auto* from = dynamic_cast<kiln::FenceExchange*>(&first);
//   auto* to = dynamic_cast<kiln::FenceExchange*>(&second);
//   if (from == nullptr || to == nullptr) return kiln::unsupported("the devices exchange no fences");
//   auto fence = from->export_fence(value);  // of first.submit()
//   if (!fence) return fence.error();
//   return to->wait_for_fence(fence->get());  // what is submitted to `second` from now on runs after it
#pragma once

#include <kiln/buffer.hpp>
#include <kiln/status.hpp>

#include <cstdint>

namespace [[gnu::visibility("default")]] kiln {

class FenceExchange {
 public:
  FenceExchange() = default;
  FenceExchange(const FenceExchange&) = delete;
  FenceExchange& operator=(const FenceExchange&) = delete;
  virtual ~FenceExchange();

  // A sync_file that is signalled when the submitted work ends, successfully or not. It may still be queued. The fence
  // may also wait for what was submitted between `value` and this call. unsupported: the driver has no such
  // descriptors. not_found: no such submission.
  virtual Result<UniqueFd> export_fence(std::uint64_t value) noexcept = 0;
  // Submissions that are made after this call run after the sync_file is signalled. The descriptor stays the caller's.
  // unsupported: as above. invalid_argument: not a sync_file.
  virtual Status wait_for_fence(int sync_file) noexcept = 0;
};

}  // namespace kiln
