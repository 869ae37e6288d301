// How many bytes of programs may stay in memory, from what the system says and what was decided before.
//
// Thread-safety: pure. Ownership: values. High pressure halves what is held, at once, and again as long as it lasts;
// where it is gone the bound doubles step by step, up to what is configured. Between two steps, of whichever
// direction, lie ten seconds, and between high and low pressure a band in which nothing changes: so it does not swing.
#pragma once

#include "cache/pressure/memory_reading.hpp"

#include <chrono>
#include <cstdint>
#include <optional>

namespace kiln {

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

}  // namespace kiln
