// The ring of command memory, the reports that the device writes, and the device's clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <kiln/device.hpp>

#include "amdgpu_pm4/winsys/winsys.hpp"

namespace kiln::amdgpu_pm4 {

// RingSpace: which bytes of a ring are in use, and until which point of a timeline. Bytes are taken in order and come
// free in order; none is given again before its point is passed.
//
// Thread-safety: one thread at a time. Ownership: knows offsets only, not the memory.
class RingSpace {
 public:
  explicit RingSpace(std::uint64_t bytes) : bytes_(bytes) {}

  // An offset of `bytes` contiguous bytes, in use until `point`; nullopt where they are not free. REQUIRES: bytes > 0,
  // alignment a power of two, points never fall.
  std::optional<std::uint64_t> take(std::uint64_t bytes, std::uint64_t alignment, std::uint64_t point);
  // Of what was taken last only the first `bytes` are used. REQUIRES: so many were taken.
  void keep_of_last(std::uint64_t bytes);
  // What was taken with this point, last, is free again: it was never used.
  void give_back(std::uint64_t point);
  // The points up to this one are passed.
  void passed(std::uint64_t point);

  std::uint64_t bytes() const noexcept { return bytes_; }
  bool empty() const noexcept { return taken_.empty(); }

 private:
  struct Taken {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t point = 0;
  };

  std::uint64_t bytes_;
  std::deque<Taken> taken_;  // oldest first
};

// RingBuffer: memory for what a submission needs only until it is done (packets, arguments, reports), from one buffer
// that is used round and round; what does not fit gets a buffer of its own.
//
// Thread-safety: one thread at a time. Ownership: owns the ring; an own buffer goes to the submission that needs it.

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

// Results: what became of the values of a queue's timeline, until somebody takes it.
//
// Thread-safety: one thread at a time. Ownership: holds results by value; one that nobody takes stays until the queue
// goes.
class Results {
 public:
  std::uint64_t next() const noexcept { return last_ + 1; }
  // next() was submitted.
  void begin() noexcept { ++last_; }
  void finish(std::uint64_t value, Result<FenceResult> result) { finished_.insert_or_assign(value, std::move(result)); }
  // The result, which is then gone; nullopt where the value is not finished. not_found: never submitted, or taken.
  // `first_pending`: the oldest value in flight, next() where there is none.
  std::optional<Result<FenceResult>> take(std::uint64_t value, std::uint64_t first_pending);

 private:
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Result<FenceResult>> finished_;
};

// DeviceClock: the device's clock counter in nanoseconds, and its readings on the host's clock.
//
// Thread-safety: one thread at a time. Ownership: borrows the winsys.
class DeviceClock {
 public:
  explicit DeviceClock(Winsys& winsys) : winsys_(winsys), khz_(winsys.facts().counter_khz) {}

  // 0 where the device tells no frequency.
  std::uint64_t ns_between(std::uint64_t begin, std::uint64_t end) const noexcept;
  // When the counter stood there, by kiln::now_ns(); 0 where that cannot be told.
  std::uint64_t on_host_clock(std::uint64_t counter) noexcept;

 private:
  Winsys& winsys_;
  const std::uint64_t khz_;
  std::uint64_t compared_at_ns_ = 0;  // the host's clock when the two were last compared; 0: never
  std::uint64_t counter_then_ = 0;
  bool refused_ = false;
};

}  // namespace kiln::amdgpu_pm4
