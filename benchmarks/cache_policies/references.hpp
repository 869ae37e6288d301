// What the policies are held against: those that remember every count for ever, those that know the future, and what
// none can exceed.
//
// Thread-safety: none; each call stands alone. Ownership: borrows the trace. Each answers the outcome of a cache of so
// many bytes that may also refuse a newcomer.
#pragma once

#include "cache/eviction_policy.hpp"
#include "cache_policies/trace.hpp"

#include <cstdint>

namespace kiln::bench {

// simulate: the hits of a memory tier of a given size for a trace under one policy.
//
// The policy learns of uses exactly, or as from the memory tier: a hit stores the current epoch in its entry, an
// insertion starts a new epoch, and before an eviction the policy gets the used entries in the order of their epochs.
// Thread-safety: none; calls are independent. Ownership: borrows the trace and the policy; each call needs a new policy.
struct Outcome {
  std::uint64_t hits = 0;
  std::uint64_t saved_ns = 0;   // build time of the hits
  std::uint64_t evictions = 0;  // refused newcomers are not counted
  std::uint64_t refused = 0;
  double policy_ns_per_miss = 0;  // spent in the policy, all its calls
};

enum class Uses : std::uint8_t { invalid = 0, exact, stamped };

Outcome simulate(const Trace& trace, std::uint64_t capacity_bytes, EvictionPolicy& policy, Uses uses);

// The least often requested leaves, by the counts of all requests so far of all programs, held or not; of equal ones
// the least recently used.
Outcome perfect_lfu(const Trace& trace, std::uint64_t capacity_bytes);
// Likewise by count x build time / bytes.
Outcome perfect_cost(const Trace& trace, std::uint64_t capacity_bytes);
// Belady's: that which is needed again last leaves. The most hits where all programs have one size.
Outcome belady(const Trace& trace, std::uint64_t capacity_bytes);
// The least build time / (bytes x requests until its next) leaves.
Outcome belady_cost(const Trace& trace, std::uint64_t capacity_bytes);

// No cache of so many bytes has more hits, or saves more: each request that a hit answers has held its bytes since the
// program's last one, and all of them together cannot hold more bytes than the capacity over all requests. The two
// figures stand apart: no single cache need reach both.
Outcome upper_bound(const Trace& trace, std::uint64_t capacity_bytes);

}  // namespace kiln::bench
