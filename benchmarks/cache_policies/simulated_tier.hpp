// simulate: what a memory tier of so many bytes would have answered for a trace under one policy.
//
// Thread-safety: none; each call stands alone. Ownership: borrows the trace and the policy, which is fresh for each
// call. Uses are told exactly, or as the memory tier tells them: a hit stamps its entry with the epoch, each newcomer
// begins an epoch, and the stamped ones are told in the order of their stamps before victims are chosen.
#pragma once

#include "cache/eviction_policy.hpp"
#include "cache_policies/trace.hpp"

#include <cstdint>

namespace kiln::bench {

struct Outcome {
  std::uint64_t hits = 0;
  std::uint64_t saved_ns = 0;   // build time of the hits
  std::uint64_t evictions = 0;  // refused newcomers are not counted
  std::uint64_t refused = 0;
  double policy_ns_per_miss = 0;  // spent in the policy, all its calls
};

enum class Uses : std::uint8_t { invalid = 0, exact, stamped };

Outcome simulate(const Trace& trace, std::uint64_t capacity_bytes, EvictionPolicy& policy, Uses uses);

}  // namespace kiln::bench
