// BuildLease: decides whether this process builds a missing program or uses the build of another process.
//
// Thread-safety: call acquire_lease() from any thread, but for one key from one thread at a time.
// Ownership: the lease is held until the BuildLease is destroyed; its ProcessTable must outlive it.
// Every wait is bounded by the request's patience.
#pragma once

#include "cache/cache_counters.hpp"
#include "cache/process_table.hpp"

#include <kiln/digest.hpp>

#include <chrono>
#include <cstdint>
#include <functional>

namespace kiln {

// What to do while another thread or process builds the program.
enum class IfBusy : std::uint8_t { invalid = 0, wait, leave };

enum class LeaseState : std::uint8_t {
  invalid = 0,
  ours,       // this process builds
  published,  // another process has stored it: load it
  busy,       // another process builds it, and the request does not wait
};

struct BuildLease {
  LeaseState state = LeaseState::ours;
  Lease lease{Lease::State::none};  // none: built without a lease
};

struct LeaseRequest {
  const Digest& digest;
  IfBusy if_busy = IfBusy::wait;
  std::chrono::nanoseconds patience{};
  // Returns whether the program can be found now.
  const std::function<bool()>& published;
};

// Also counts each wait and its outcome in `counters`.
BuildLease acquire_lease(ProcessTable& table, const LeaseRequest& request, CacheCounters& counters);

}  // namespace kiln
