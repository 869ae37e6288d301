// SievePolicy: one queue in order of arrival and a hand that walks it from old to new; what was used since the hand
// last passed is spared, what was not leaves. Used programs never move.
//
// Thread-safety and ownership: as EvictionPolicy. A use within an entry's first epoch is not told and does not spare
// it. The newcomer is chosen last. Each entry is looked at three times at most in one choose(). Invariants: the queue
// holds exactly the entries held, newest arrival first; the hand is one of them, or none: then the walk begins at the
// oldest.
#pragma once

#include "cache/policy/eviction_policy.hpp"
#include "cache/policy/parts/entry_queues.hpp"

namespace kiln {

class SievePolicy final : public EvictionPolicy {
 public:
  void inserted(EntryId id, const EntryFacts& facts) override;
  void used(EntryId id, std::uint32_t times) noexcept override;
  void updated(EntryId id, const EntryFacts& facts) noexcept override;
  void erased(EntryId id) noexcept override;
  bool choose(const RoomNeeded& needed, const Evictable& evictable, std::vector<EntryId>& victims) override;

 private:
  struct Entry {
    std::uint64_t charge = 0;
    std::uint64_t chosen_in = 0;  // the choose() that named it
    bool visited = false;
  };

  EntryQueues by_arrival_{1};
  std::vector<Entry> entries_;
  EntryId hand_ = no_entry;
  std::uint64_t choices_ = 0;
};

}  // namespace kiln
