// BuildLease: whether this process builds a program that was not found, or another one that is building it already.
//
// Thread-safety: acquire_lease() from any thread, for one key once at a time. Ownership: a lease is held as long as it
// lives; its table outlives it. Every wait ends: with the program published, with the lease, or with the patience.
#pragma once

#include "cache/cache_counters.hpp"
#include "cache/process_table.hpp"

#include <kiln/digest.hpp>

#include <chrono>
#include <cstdint>
#include <functional>

namespace kiln {

// What a caller wants where another thread or process builds the program now.
enum class IfBusy : std::uint8_t { invalid = 0, wait, leave };

enum class LeaseState : std::uint8_t {
  invalid = 0,
  ours,       // build it
  published,  // it was stored meanwhile: read it
  busy,       // another process builds it, and this one was told not to wait
};

struct BuildLease {
  LeaseState state = LeaseState::ours;
  Lease lease{Lease::State::none};  // none: unshared
};

struct LeaseRequest {
  const Digest& digest;
  IfBusy if_busy = IfBusy::wait;
  std::chrono::nanoseconds patience{};
  // Whether the program can be found now.
  const std::function<bool()>& published;
};

// Counts the waits and how they ended.
BuildLease acquire_lease(ProcessTable& table, const LeaseRequest& request, CacheCounters& counters);

}  // namespace kiln
