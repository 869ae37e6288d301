// RingBuffer: memory for what a submission needs only until it is done (packets, arguments, reports), from one buffer
// that is used round and round; what does not fit gets a buffer of its own.
//
// Thread-safety: one thread at a time. Ownership: owns the ring; an own buffer goes to the submission that needs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "amdgpu_pm4/device/queue/ring_space.hpp"
#include "amdgpu_pm4/winsys/placement.hpp"

namespace kiln::amdgpu_pm4 {

struct RingPart {
  std::span<std::byte> memory;  // the host's view of it
  std::uint64_t address = 0;    // the GPU's
};

class RingBuffer {
 public:
  static Result<std::unique_ptr<RingBuffer>> create(Winsys& winsys, BufferUse use, std::uint64_t bytes);

  // In use until `point`. Empty memory: not free now. What is larger than half of the ring goes into `own`.
  Result<RingPart> take(std::uint64_t bytes, std::uint64_t alignment, std::uint64_t point,
                        std::vector<std::shared_ptr<BufferObject>>& own);
  // As take(), and always a buffer of its own.
  Result<RingPart> take_own(std::uint64_t bytes, std::vector<std::shared_ptr<BufferObject>>& own);

  RingSpace& space() noexcept { return space_; }
  const BufferObject& object() const noexcept { return *object_; }

 private:
  RingBuffer(Winsys& winsys, BufferUse use, std::unique_ptr<BufferObject> object)
      : winsys_(winsys), use_(use), object_(std::move(object)), space_(object_->bytes()) {}

  Winsys& winsys_;
  const BufferUse use_;
  std::unique_ptr<BufferObject> object_;
  RingSpace space_;
};

}  // namespace kiln::amdgpu_pm4
