#include "cache/pressure/pressure_decision.hpp"

#include <algorithm>

namespace kiln {
namespace {

// Below this part of what is configured, evicting more would cost more memory in builds than it frees.
constexpr std::uint64_t least_part = 16;

double used_share(const MemoryReading& reading) {
  if (!reading.group) return 0;
  return static_cast<double>(reading.group->used) / static_cast<double>(reading.group->limit);
}

bool is_high(const MemoryReading& reading, const PressureRules& rules) {
  return reading.stalled_percent.value_or(0) >= rules.stalled_high || used_share(reading) >= rules.used_high;
}

bool is_low(const MemoryReading& reading, const PressureRules& rules) {
  return reading.stalled_percent.value_or(0) < rules.stalled_low && used_share(reading) < rules.used_low;
}

}  // namespace

PressureState decide(const PressureState& before, const MemoryReading& reading, std::uint64_t configured,
                     std::uint64_t held, std::uint64_t now_ns, const PressureRules& rules) {
  const auto between = static_cast<std::uint64_t>(rules.between_steps.count());
  if (before.step_ns && now_ns < *before.step_ns + between) return before;
  const std::uint64_t least = configured / least_part;
  if (is_high(reading, rules)) {
    // The first step takes half of whatever there is; those after it stop at the least that is of use.
    const std::uint64_t half = before.cap ? std::max(std::min(held, *before.cap) / 2, least) : held / 2;
    if (before.cap && half >= *before.cap) return before;
    return {half, now_ns};
  }
  if (before.cap && is_low(reading, rules)) {
    const std::uint64_t doubled = std::max(*before.cap * 2, least);
    if (doubled >= configured) return {std::nullopt, now_ns};
    return {doubled, now_ns};
  }
  return before;
}

std::uint64_t bound_of(const PressureState& state, const MemoryReading& reading, std::uint64_t configured,
                       const PressureRules& rules) {
  std::uint64_t bound = std::min(configured, state.cap.value_or(configured));
  if (reading.group) bound = std::min(bound, reading.group->limit / rules.most_of_limit);
  return bound;
}

}  // namespace kiln
