// Deadline: until when an ioctl waits, from the three forms in which the interface says so. wait_until waits for a
// condition on the device with its mutex let go.
//
// Thread-safety and ownership: values; wait_until REQUIRES `lock` to hold the device's mutex.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>

#include "simulator/kernel/device/device.hpp"

namespace kiln::simulator::kernel {

class Deadline {
 public:
  // Of the driver's own ioctls: nanoseconds of the monotonic clock; negative as a signed number: for ever.
  static Deadline of_driver(std::uint64_t nanoseconds) noexcept {
    return Deadline(static_cast<std::int64_t>(nanoseconds) < 0 ? for_ever : static_cast<std::int64_t>(nanoseconds));
  }
  // Of the sync objects: likewise, but what lies in the past, negative ones among it, only looks.
  static Deadline of_sync_objects(std::int64_t nanoseconds) noexcept { return Deadline(nanoseconds); }
  static Deadline in(std::chrono::nanoseconds from_now) noexcept { return Deadline(now() + from_now.count()); }

  bool passed() const noexcept { return now() >= at_; }
  // For one sleep: far deadlines are reached in several.
  std::chrono::steady_clock::time_point next_look() const noexcept {
    constexpr std::int64_t longest = 3'600'000'000'000;
    const std::int64_t start = now();
    const std::int64_t end = at_ - start > longest ? start + longest : at_;
    return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(end));
  }

 private:
  static constexpr std::int64_t for_ever = INT64_MAX;

  explicit Deadline(std::int64_t at) noexcept : at_(at) {}
  // The steady clock of this standard library is CLOCK_MONOTONIC, which the interface counts in.
  static std::int64_t now() noexcept {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

  std::int64_t at_;
};

// Whether the condition came true in time. A device that is gone ends the wait: the caller looks at `unplugged`.
template <class Condition>
bool wait_until(Device& device, std::unique_lock<std::mutex>& lock, const Deadline& deadline, Condition condition) {
  while (!condition()) {
    if (device.unplugged || deadline.passed()) return false;
    device.fences.changed.wait_until(lock, deadline.next_look());
  }
  return true;
}

}  // namespace kiln::simulator::kernel
