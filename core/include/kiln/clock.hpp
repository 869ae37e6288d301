// Deadline: the one clock of Kiln (steady), and the latest moment a call may wait for.
//
// Thread-safety: a Deadline is a value; now_ns() from any thread. Ownership: values.
#pragma once

#include <chrono>
#include <cstdint>

namespace kiln {

using Clock = std::chrono::steady_clock;

struct Deadline {
  Clock::time_point at = Clock::time_point::max();  // max: wait for ever

  static Deadline never() noexcept { return {}; }
  static Deadline after(std::chrono::nanoseconds wait) noexcept;  // saturates instead of overflowing
  bool passed() const noexcept { return at != Clock::time_point::max() && Clock::now() >= at; }
  // Time left, never negative; nanoseconds::max() where there is no deadline.
  std::chrono::nanoseconds left() const noexcept;
};

// Nanoseconds of the steady clock, for stamps and differences.
std::uint64_t now_ns() noexcept;

}  // namespace kiln
