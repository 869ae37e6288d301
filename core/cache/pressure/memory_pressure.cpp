#include "cache/pressure/memory_pressure.hpp"

#include <utility>

namespace kiln {
namespace {

constexpr std::uint64_t between_looks_ns = 250'000'000;

}  // namespace

MemoryPressure::MemoryPressure(MemorySources sources, PressureRules rules)
    : sources_(std::move(sources)), rules_(rules) {}

bool MemoryPressure::is_due(std::uint64_t now_ns) noexcept {
  std::uint64_t due = due_ns_.load(std::memory_order_relaxed);
  return now_ns >= due && due_ns_.compare_exchange_strong(due, now_ns + between_looks_ns, std::memory_order_relaxed);
}

std::uint64_t MemoryPressure::bound(std::uint64_t configured, std::uint64_t held, std::uint64_t now_ns) {
  const MemoryReading reading = read_memory(sources_);
  const std::lock_guard lock(mutex_);
  state_ = decide(state_, reading, configured, held, now_ns, rules_);
  return bound_of(state_, reading, configured, rules_);
}

}  // namespace kiln
