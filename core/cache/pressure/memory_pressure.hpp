// MemoryPressure: keeps the bound of the memory tier to what the system can spare. It has no thread: whoever inserts a
// program, or begins a job, asks whether a look is due, and pays for it four times a second at most.
//
// Thread-safety: every method from any thread; of several for whom a look is due at one time, one looks. Ownership:
// values.
#pragma once

#include "cache/pressure/memory_reading.hpp"
#include "cache/pressure/pressure_decision.hpp"

#include <atomic>
#include <cstdint>
#include <mutex>

namespace kiln {

class MemoryPressure {
 public:
  explicit MemoryPressure(MemorySources sources = {}, PressureRules rules = {});

  // true for one caller, a quarter of a second after the last look and later: that one shall call bound().
  bool is_due(std::uint64_t now_ns) noexcept;
  // Looks, decides, and answers the bytes that programs may take now: at most `configured`.
  std::uint64_t bound(std::uint64_t configured, std::uint64_t held, std::uint64_t now_ns);

 private:
  const MemorySources sources_;
  const PressureRules rules_;
  std::atomic<std::uint64_t> due_ns_{0};
  std::mutex mutex_;
  PressureState state_;
};

}  // namespace kiln
