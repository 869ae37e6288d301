// SimClock: the time of simulated devices.
//
// real: the host's own clock; what takes time sleeps. virtual: time passes only when somebody spends it or waits for a
// device, and then at once; of two threads that spend at the same time the sum passes. stepped: as virtual, but a
// scheduler sets the time and takes what each step has spent: so steps that overlap can be laid side by side, and
// nothing waits. Thread-safety: every method from any thread; a stepped clock belongs to one. Ownership: shared by the
// devices of one driver.
#pragma once

#include <kiln/clock.hpp>

#include <atomic>
#include <cstdint>

namespace kiln::support {

enum class Pace : std::uint8_t { invalid = 0, real, virtual_time, stepped };

class SimClock {
 public:
  explicit SimClock(Pace pace) noexcept : pace_(pace) {}

  Pace pace() const noexcept { return pace_; }
  std::uint64_t now() const noexcept { return pace_ == Pace::real ? now_ns() : now_.load(); }
  void spend(std::uint64_t ns) noexcept { now_ += ns; }  // REQUIRES: not real
  void reach(std::uint64_t ns) noexcept {                // REQUIRES: not real
    std::uint64_t now = now_.load();
    while (now < ns && !now_.compare_exchange_weak(now, ns)) {
    }
  }
  void set(std::uint64_t ns) noexcept { now_ = ns; }  // REQUIRES: stepped

 private:
  const Pace pace_;
  std::atomic<std::uint64_t> now_{1'000'000'000};  // not 0, which stands for a stamp that was not taken
};

}  // namespace kiln::support
