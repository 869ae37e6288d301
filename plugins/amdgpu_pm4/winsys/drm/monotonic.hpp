// Deadlines as the kernel interface takes them: absolute nanoseconds of CLOCK_MONOTONIC, which is Kiln's clock.
//
// Thread-safety: a pure function. Ownership: none.
#pragma once

#include <kiln/clock.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace kiln::amdgpu_pm4 {

// INT64_MAX, which means for ever, where there is no deadline.
inline std::int64_t monotonic_ns(Deadline deadline) noexcept {
  const auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline.at.time_since_epoch()).count();
  return std::max<std::int64_t>(since, 0);
}

}  // namespace kiln::amdgpu_pm4
