// UsualCopy: what a copy of so many bytes is likely to take, by recent ones: in proportion to their mean.
//
// Thread-safety: every method from any thread; of two that learn at once one may be forgotten. Ownership: values.
#pragma once

#include <atomic>
#include <cstdint>

namespace kiln::executor {

class UsualCopy {
 public:
  // Until a copy has been measured: 4 GB/s.
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
