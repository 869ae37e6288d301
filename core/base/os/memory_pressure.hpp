// Memory pressure: reads the memory state of the system and limits the memory of cached programs.
//
// The inputs are memory stalls (PSI) and the memory use of the process's control group. Missing files are normal and
// ignored.
// Thread-safety: functions from any thread; MemoryPressure: every method from any thread. Ownership: values.
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
  std::filesystem::path groups = "/sys/fs/cgroup";  // cgroup version 2, or the folder above `memory` of version 1
};

struct GroupUse {
  std::uint64_t limit = 0;
  std::uint64_t used = 0;  // without file pages, which the kernel can reclaim
};

struct MemoryReading {
  std::optional<double> stalled_percent;  // share of the last ten seconds in which a task stalled
  std::optional<GroupUse> group;          // the fullest of the process's group and its parents
};

MemoryReading read_memory(const MemorySources& sources);

// Thresholds. High pressure halves the bound at once and again after each interval. Low pressure doubles it step by
// step up to the configured bound. Between the two thresholds the bound stays the same, to prevent oscillation.
struct PressureRules {
  double stalled_high = 10, stalled_low = 5;  // percent
  double used_high = 0.95, used_low = 0.85;   // share of the group's limit
  // Programs use at most 1/most_of_limit of the group's limit, regardless of pressure.
  std::uint64_t most_of_limit = 4;
  std::chrono::nanoseconds between_steps = std::chrono::seconds(10);
};

struct PressureState {
  std::optional<std::uint64_t> cap;      // bytes; nullopt: the configured bound
  std::optional<std::uint64_t> step_ns;  // time of the last change
};

// Returns the next state. `held`: bytes of programs in memory now.
PressureState decide(const PressureState& before, const MemoryReading& reading, std::uint64_t configured,
                     std::uint64_t held, std::uint64_t now_ns, const PressureRules& rules = {});

// Returns the bound in bytes for this state.
std::uint64_t bound_of(const PressureState& state, const MemoryReading& reading, std::uint64_t configured,
                       const PressureRules& rules = {});

// Adapts the bound of the memory tier. Without a thread: callers that insert a program or start a job poll is_due(),
// which is true at most four times per second.
class MemoryPressure {
 public:
  explicit MemoryPressure(MemorySources sources = {}, PressureRules rules = {});

  // Returns true to one caller per 250 ms; that caller must call bound().
  bool is_due(std::uint64_t now_ns) noexcept;
  // Reads the memory state and returns the bound in bytes, at most `configured`.
  std::uint64_t bound(std::uint64_t configured, std::uint64_t held, std::uint64_t now_ns);

 private:
  const MemorySources sources_;
  const PressureRules rules_;
  std::atomic<std::uint64_t> due_ns_{0};
  std::mutex mutex_;
  PressureState state_;
};

}  // namespace kiln
