// What the policies are held against: those that remember every count for ever, those that know the future, and what
// none can exceed.
//
// Thread-safety: none; each call stands alone. Ownership: borrows the trace. Each answers the outcome of a cache of so
// many bytes that may also refuse a newcomer.
#pragma once

#include "cache_policies/simulated_tier.hpp"
#include "cache_policies/trace.hpp"

namespace kiln::bench {

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
