#include <kiln/clock.hpp>

namespace kiln {

Deadline Deadline::after(std::chrono::nanoseconds wait) noexcept {
  const Clock::time_point now = Clock::now();
  if (wait >= Clock::time_point::max() - now) return never();
  return {now + wait};
}

std::chrono::nanoseconds Deadline::left() const noexcept {
  if (at == Clock::time_point::max()) return std::chrono::nanoseconds::max();
  const Clock::time_point now = Clock::now();
  return now >= at ? std::chrono::nanoseconds::zero() : at - now;
}

std::uint64_t now_ns() noexcept {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count());
}

}  // namespace kiln
