// Deadline: the latest time at which a call may return, on Kiln's clock (steady).
//
// Thread-safety: values; functions from any thread. Ownership: values. Times are in nanoseconds.
//
//   const kiln::Deadline deadline = kiln::Deadline::after(std::chrono::seconds(5));
//   while (!deadline.passed()) poll(deadline.left());
#pragma once

#include <chrono>
#include <cstdint>

namespace [[gnu::visibility("default")]] kiln {

using Clock = std::chrono::steady_clock;

struct Deadline {
  Clock::time_point at = Clock::time_point::max();  // max: no limit

  static Deadline never() noexcept { return {}; }
  static Deadline after(std::chrono::nanoseconds wait) noexcept;  // saturates instead of overflowing
  bool passed() const noexcept { return at != Clock::time_point::max() && Clock::now() >= at; }
  // Time left, never negative; nanoseconds::max() without a limit.
  std::chrono::nanoseconds left() const noexcept;
};

// Current time of the steady clock in nanoseconds.
std::uint64_t now_ns() noexcept;

}  // namespace kiln
