#include "amdgpu_pm4/device/queue/ring_space.hpp"

namespace kiln::amdgpu_pm4 {

std::optional<std::uint64_t> RingSpace::take(std::uint64_t bytes, std::uint64_t alignment, std::uint64_t point) {
  if (bytes > bytes_) return std::nullopt;
  std::uint64_t begin = 0;
  if (!taken_.empty()) {
    const std::uint64_t oldest = taken_.front().begin;
    const std::uint64_t newest = taken_.back().end;
    begin = (newest + alignment - 1) & ~(alignment - 1);
    const bool wrapped = newest <= oldest;  // what is free lies between the two
    if (wrapped ? begin > oldest || oldest - begin < bytes : begin > bytes_ || bytes_ - begin < bytes) {
      if (wrapped || oldest < bytes) return std::nullopt;
      begin = 0;
    }
  }
  taken_.push_back({begin, begin + bytes, point});
  return begin;
}

void RingSpace::keep_of_last(std::uint64_t bytes) { taken_.back().end = taken_.back().begin + bytes; }

void RingSpace::give_back(std::uint64_t point) {
  while (!taken_.empty() && taken_.back().point == point) taken_.pop_back();
}

void RingSpace::passed(std::uint64_t point) {
  while (!taken_.empty() && taken_.front().point <= point) taken_.pop_front();
}

}  // namespace kiln::amdgpu_pm4
