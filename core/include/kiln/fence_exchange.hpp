// FenceExchange: an optional interface of a Device that orders work between drivers without a wait on the host.
//
// A fence is a sync_file, a Linux file descriptor. One driver signals it when work ends, and the queue of another driver
// waits for it. In Vulkan it is a semaphore of handle type SYNC_FD, in OpenGL EGL_ANDROID_native_fence_sync, in the kernel's
// amdgpu interface a point of a sync object.
//
// Query a Device for it with dynamic_cast. To share memory between the devices, use BufferDesc::import_fd and
// Buffer::export_fd().
// Thread-safety: every method from any thread. Ownership: the object is part of the device. The caller owns exported
// descriptors and the descriptors that it passes.
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

  // Returns a sync_file that is signalled when the submitted work ends, with or without an error. The work may still be
  // queued. The fence may also wait for work that was submitted between `value` and this call. unsupported: the driver has
  // no such descriptors. not_found: no such submission.
  virtual Result<UniqueFd> export_fence(std::uint64_t value) noexcept = 0;
  // Later submissions run after the sync_file is signalled. The caller still owns the descriptor. unsupported: the driver
  // has no such descriptors. invalid_argument: not a sync_file.
  virtual Status wait_for_fence(int sync_file) noexcept = 0;
};

}  // namespace kiln
