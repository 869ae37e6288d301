// CostPolicy: who saves the least time for the room that it takes leaves first: uses x saved_ns / weight, where the
// count of uses decays by half with every so many uses told of the whole cache. Counts outlive the stay in memory, as
// ghosts.
//
// Thread-safety and ownership: as EvictionPolicy. The newcomer is refused where those that would have to leave for it
// save more together. O(log n) a call.
// Invariants: order_ holds exactly the entries held, by rank; the logarithm of a count stands as if it had never
// decayed and newer uses had grown instead, so that ranks do not change while nothing is used; at most eight ghosts for
// each entry that was held at one time, and 1,024.
#pragma once

#include "cache/policy/eviction_policy.hpp"
#include "cache/policy/parts/ghost_table.hpp"

#include <set>

namespace kiln {

class CostPolicy final : public EvictionPolicy {
 public:
  explicit CostPolicy(std::uint64_t least_weight) : least_weight_(least_weight) {}

  void inserted(EntryId id, const EntryFacts& facts) override;
  void used(EntryId id, std::uint32_t times) noexcept override;
  void updated(EntryId id, const EntryFacts& facts) noexcept override;
  void erased(EntryId id) noexcept override;
  bool choose(const RoomNeeded& needed, const Evictable& evictable, std::vector<EntryId>& victims) override;

 private:
  struct Rank {
    double log_worth = 0;  // binary logarithm of uses x saved_ns / weight
    EntryId id = no_entry;
    friend auto operator<=>(const Rank&, const Rank&) = default;
  };
  using Order = std::set<Rank>;
  struct Entry {
    EntryFacts facts;
    double log_uses = 0;  // binary logarithm, grown by age_ of the latest use
    Order::iterator place;
  };

  void tell(double uses) noexcept;
  double log_worth(const Entry& entry) const noexcept;
  double saves(const Entry& entry) const noexcept;  // ns, decayed to this moment
  void rank_again(EntryId id) noexcept;

  const std::uint64_t least_weight_;
  Order order_;
  std::vector<Entry> entries_;
  GhostTable ghosts_;
  double age_ = 0;  // half-lives since the beginning
};

}  // namespace kiln
