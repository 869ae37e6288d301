// LruPolicy: the least recently used program leaves first.
//
// Thread-safety and ownership: as EvictionPolicy. Approximate: uses within one epoch have no order among them; where
// every use is an epoch of its own it is exact. The newcomer is the most recently used: it is chosen last.
// Invariants: the queue holds exactly the entries held, newest use first; charges_ knows each of them.
#pragma once

#include "cache/policy/eviction_policy.hpp"
#include "cache/policy/parts/entry_queues.hpp"

namespace kiln {

class LruPolicy final : public EvictionPolicy {
 public:
  void inserted(EntryId id, const EntryFacts& facts) override;
  void used(EntryId id, std::uint32_t times) noexcept override;
  void updated(EntryId id, const EntryFacts& facts) noexcept override;
  void erased(EntryId id) noexcept override;
  bool choose(const RoomNeeded& needed, const Evictable& evictable, std::vector<EntryId>& victims) override;

 private:
  EntryQueues by_use_{1};
  std::vector<std::uint64_t> charges_;
};

}  // namespace kiln
