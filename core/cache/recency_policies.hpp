// LruPolicy and SievePolicy: they know only when programs were used, not what they cost; both admit every newcomer.
//
// Thread-safety and ownership: as EvictionPolicy.
#pragma once

#include "cache/eviction_policy.hpp"

#include <cstddef>

namespace kiln {

// A doubly linked queue over entry numbers. The links lie in one table that grows to the largest number seen.
// Invariants: newer() and older() of neighbours agree; size() is the number of entries reached from newest().
class EntryQueue {
 public:
  void reserve(EntryId id);                  // push_newest() needs it once before; may throw std::bad_alloc
  void push_newest(EntryId id) noexcept;     // REQUIRES: not in the queue, and reserved
  void remove(EntryId id) noexcept;          // REQUIRES: in the queue
  void move_to_newest(EntryId id) noexcept;  // REQUIRES: in the queue

  // no_entry where there is none.
  EntryId newest() const noexcept { return newest_; }
  EntryId oldest() const noexcept { return oldest_; }
  EntryId newer(EntryId id) const noexcept { return links_[id].newer; }
  EntryId older(EntryId id) const noexcept { return links_[id].older; }
  std::size_t size() const noexcept { return size_; }

 private:
  struct Link {
    EntryId newer = no_entry;
    EntryId older = no_entry;
  };
  std::vector<Link> links_;
  EntryId newest_ = no_entry;
  EntryId oldest_ = no_entry;
  std::size_t size_ = 0;
};

// The least recently used program leaves first. Approximate: uses within one epoch have no order among them; where
// every use is an epoch of its own it is exact. The newcomer is the most recently used: it is chosen last.
class LruPolicy final : public EvictionPolicy {
 public:
  void inserted(EntryId id, const EntryFacts& facts) override;
  void used(EntryId id, std::uint32_t times) noexcept override;
  void updated(EntryId id, const EntryFacts& facts) noexcept override;
  void erased(EntryId id) noexcept override;
  bool choose(const RoomNeeded& needed, const Evictable& evictable, std::vector<EntryId>& victims) override;

 private:
  EntryQueue by_use_;  // exactly the entries held
  std::vector<std::uint64_t> charges_;
};

// One queue in order of arrival and a hand that walks it from old to new: what was used since the hand last passed is
// spared, what was not leaves. Used programs never move. A use within an entry's first epoch is not reported and does
// not spare it. The newcomer is chosen last. One choose() examines each entry three times at most.
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

  EntryQueue by_arrival_;  // exactly the entries held
  std::vector<Entry> entries_;
  EntryId hand_ = no_entry;  // one of them; no_entry: the walk begins at the oldest
  std::uint64_t choices_ = 0;
};

}  // namespace kiln
