// CostPolicy: who is expected to save the least time for the room and the time that it takes leaves first.
//
// From the intervals at which a program was used before, here or before it left (ghosts), follows how many uses to
// expect for each unit of time that it is kept (UseHistory::prospect); that, times saved_ns ÷ weight, is its worth. A
// program that is used in bursts loses its worth soon after a burst, one that is used rarely and regularly keeps it.
// Thread-safety and ownership: as EvictionPolicy. The newcomer is refused where one that would have to leave for it is
// worth more. choose() looks at every entry, and where more than 1,024 are held at that many drawn at random.
// Invariants: held_ holds exactly the entries held, entries_[id].place is the place there; at most eight ghosts for
// each entry that was held at one time, or 256.
#pragma once

#include "cache/policy/eviction_policy.hpp"
#include "cache/policy/parts/ghost_table.hpp"
#include "cache/policy/parts/use_history.hpp"

#include <utility>

namespace kiln {

class Room;

class CostPolicy final : public EvictionPolicy {
 public:
  explicit CostPolicy(std::uint64_t least_weight) : least_weight_(least_weight) {}

  void inserted(EntryId id, const EntryFacts& facts) override;
  void used(EntryId id, std::uint32_t times) noexcept override;
  void updated(EntryId id, const EntryFacts& facts) noexcept override;
  void erased(EntryId id) noexcept override;
  bool choose(const RoomNeeded& needed, const Evictable& evictable, std::vector<EntryId>& victims) override;

 private:
  struct Entry {
    EntryFacts facts;
    UseHistory history;
    std::size_t place = 0;
    std::uint32_t age_class = 0;  // to which `prospect` belongs
    double prospect = -1;         // negative: to be worked out
  };
  using Ranked = std::pair<double, EntryId>;  // by worth

  double half_life() const noexcept;
  double worth(EntryId id) noexcept;
  void rank_all(const RoomNeeded& needed, const Evictable& evictable);
  void rank_some(const RoomNeeded& needed, const Evictable& evictable);
  // Of those ranked, least first, until there is room; answers whether the newcomer was admitted as far as they went.
  bool take_least(const RoomNeeded& needed, Room& room);

  const std::uint64_t least_weight_;
  std::vector<Entry> entries_;
  std::vector<EntryId> held_;
  GhostTable<UseHistory> ghosts_;
  std::vector<Ranked> ranked_;  // of one choose()
  std::uint64_t now_ = 0;       // uses told
  std::uint64_t draws_ = 0;
};

}  // namespace kiln
