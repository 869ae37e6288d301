// DeviceClock: the device's clock counter in nanoseconds, and its readings on the host's clock.
//
// Thread-safety: one thread at a time. Ownership: borrows the winsys.
#pragma once

#include <cstdint>

#include "amdgpu_pm4/winsys/winsys.hpp"

namespace kiln::amdgpu_pm4 {

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
