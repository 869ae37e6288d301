// RunAverage: what a job of one queue takes of the queue's time, by recent jobs.
//
// Thread-safety: add() from one thread at a time; ns() from any. Jobs overlap, so a job's share counts from the end of
// the one before it, or from its own start where the queue was idle.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace kiln::executor {

class RunAverage {
 public:
  enum class Outcome : std::uint8_t { invalid = 0, finished, failed };

  // A job that failed is not learned from, but the next one's share begins at its end.
  void add(std::uint64_t started_ns, std::uint64_t ended_ns, Outcome outcome) noexcept {
    const double run = static_cast<double>(ended_ns - std::min(ended_ns, std::max(started_ns, last_end_ns_)));
    last_end_ns_ = std::max(last_end_ns_, ended_ns);
    if (outcome != Outcome::finished) return;
    const double old = static_cast<double>(ns_.load(std::memory_order_relaxed));
    ns_.store(static_cast<std::uint64_t>(old == 0 ? run : old + alpha * (run - old)), std::memory_order_relaxed);
  }
  std::uint64_t ns() const noexcept { return ns_.load(std::memory_order_relaxed); }

 private:
  static constexpr double alpha = 0.2;

  std::uint64_t last_end_ns_ = 0;
  std::atomic<std::uint64_t> ns_{0};
};

}  // namespace kiln::executor
