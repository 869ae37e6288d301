// DepthController: the number of slots that keeps the slowest stage busy, from the stage times of recent jobs.
//
// A ring of N slots finishes a job every max(slowest stage, sum of stages ÷ N), so N = sum ÷ slowest is enough for
// constant times. If times vary, other slots must do the work of one that waits behind a long job: the margin grows with
// the variation of the total time.
// Thread-safety: none. Ownership: a value.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

namespace kiln::executor {

class DepthController {
 public:
  explicit DepthController(std::uint32_t most) noexcept : most_(most) {}

  // Adds the times of one job: upload, device, readback. Returns the depth for later jobs.
  std::uint32_t add(const std::array<double, 3>& stages_ns) noexcept;
  std::uint32_t depth() const noexcept { return depth_; }

 private:
  const std::uint32_t most_;
  std::uint32_t depth_ = 3;
  std::uint32_t jobs_ = 0;
  std::array<double, 3> mean_{};
  std::array<double, 3> variance_{};
};

// RunAverage: the average time per job of one queue.
//
// Jobs overlap, so the time of a job starts at the end of the previous job, or at its own start if the queue was idle.
// Thread-safety: add() from one thread at a time; ns() from any.
class RunAverage {
 public:
  enum class Outcome : std::uint8_t { invalid = 0, finished, failed };

  // A failed job does not change the average, but the time of the next job starts at its end.
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

// UsualCopy: the expected time of a copy, in proportion to the mean size and time of recent copies.
//
// Thread-safety: every method from any thread; of two simultaneous learn() calls one may be lost. Ownership: values.
class UsualCopy {
 public:
  // Assumes 4 GB/s until a copy was measured.
  std::uint64_t ns(std::uint64_t bytes) const noexcept {
    const double usual = bytes_.load(std::memory_order_relaxed);
    const double count = static_cast<double>(bytes);
    return static_cast<std::uint64_t>(usual == 0 ? count / 4 : ns_.load(std::memory_order_relaxed) * (count / usual));
  }
  // REQUIRES: bytes is not 0.
  void learn(std::uint64_t bytes, std::uint64_t ns) noexcept {
    const bool first = bytes_.load(std::memory_order_relaxed) == 0;
    follow(ns_, static_cast<double>(ns), first);
    follow(bytes_, static_cast<double>(bytes), first);
  }

 private:
  static void follow(std::atomic<double>& mean, double value, bool first) noexcept {
    const double old = first ? value : mean.load(std::memory_order_relaxed);
    mean.store(old + 0.2 * (value - old), std::memory_order_relaxed);
  }

  std::atomic<double> ns_{0};
  std::atomic<double> bytes_{0};
};

}  // namespace kiln::executor
