// What the system says of memory at one moment: how long tasks stalled for want of it (PSI), and how much of its limit
// the process's control group uses. Files that are missing are usual, and say nothing.
//
// Thread-safety: pure calls of the operating system. Ownership: values.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>

namespace kiln {

struct MemorySources {
  std::filesystem::path stalls = "/proc/pressure/memory";
  std::filesystem::path membership = "/proc/self/cgroup";
  std::filesystem::path groups = "/sys/fs/cgroup";  // version 2, or below it `memory` of version 1
};

struct GroupUse {
  std::uint64_t limit = 0;
  std::uint64_t used = 0;  // without pages of files, which go when room is needed
};

struct MemoryReading {
  std::optional<double> stalled_percent;  // of the last ten seconds, in which some task stalled
  std::optional<GroupUse> group;          // the fullest among the process's group and those above it
};

MemoryReading read_memory(const MemorySources& sources);

// How many bytes of programs may stay in memory, from what the system says and what was decided before.
//
// Thread-safety: pure. Ownership: values. High pressure halves what is held, at once, and again as long as it lasts;
// where it is gone the bound doubles step by step, up to what is configured. Between two steps, of whichever
// direction, lie ten seconds, and between high and low pressure a band in which nothing changes: so it does not swing.

struct PressureRules {
  double stalled_high = 10, stalled_low = 5;  // percent of the last ten seconds
  double used_high = 0.95, used_low = 0.85;   // of the group's limit
  // Programs never take more of the group's limit than this, pressure or not.
  std::uint64_t most_of_limit = 4;  // one of so many parts
  std::chrono::nanoseconds between_steps = std::chrono::seconds(10);
};

struct PressureState {
  std::optional<std::uint64_t> cap;      // bytes; empty: no more than configured
  std::optional<std::uint64_t> step_ns;  // when it last changed
};

// `held`: bytes of programs in memory now.
PressureState decide(const PressureState& before, const MemoryReading& reading, std::uint64_t configured,
                     std::uint64_t held, std::uint64_t now_ns, const PressureRules& rules = {});

// The bound that follows.
std::uint64_t bound_of(const PressureState& state, const MemoryReading& reading, std::uint64_t configured,
                       const PressureRules& rules = {});

// MemoryPressure: keeps the bound of the memory tier to what the system can spare. It has no thread: whoever inserts a
// program, or begins a job, asks whether a look is due, and pays for it four times a second at most.
//
// Thread-safety: every method from any thread; of several for whom a look is due at one time, one looks. Ownership:
// values.

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
