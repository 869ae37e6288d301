// RingSpace: which bytes of a ring are in use, and until which point of a timeline. Bytes are taken in order and come
// free in order; none is given again before its point is passed.
//
// Thread-safety: one thread at a time. Ownership: knows offsets only, not the memory.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace kiln::amdgpu_pm4 {

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

}  // namespace kiln::amdgpu_pm4
