// SharedFences: binary semaphores that carry sync_files between this queue and other drivers.
//
// Thread-safety: none: the queue's lock is held. Ownership: keeps each semaphore until the submission that uses it has
// ended, then uses it again.
#pragma once

#include <kiln/buffer.hpp>

#include <cstdint>
#include <span>
#include <vector>

#include "objects/gpu.hpp"

namespace kiln::vulkan {

class SharedFences {
 public:
  explicit SharedFences(Gpu& gpu) : gpu_(gpu) {}

  // unsupported: the driver shares no semaphores.
  Status supported() const;
  // A semaphore that submission `value` has to signal.
  Result<VkSemaphore> signalled_by(std::uint64_t value);
  // REQUIRES: the submission that signals it was made.
  Result<UniqueFd> export_file(VkSemaphore semaphore);
  // The next submission has to wait for the descriptor's fence.
  Status import_file(int sync_file);
  // What the next submission waits for.
  std::span<const VkSemaphore> awaited() const noexcept { return awaited_; }
  void awaited_by(std::uint64_t value);  // it was made
  void passed(std::uint64_t value);      // it has ended, and all before it

 private:
  struct Used {
    std::uint64_t value = 0;
    OwnedSemaphore semaphore;
  };
  Result<OwnedSemaphore> take();

  Gpu& gpu_;
  std::vector<VkSemaphore> awaited_;
  std::vector<OwnedSemaphore> imported_;  // of awaited_
  std::vector<Used> used_;
  std::vector<OwnedSemaphore> spare_;
};

}  // namespace kiln::vulkan
