// EvictionPolicy: decides which program leaves memory when room is needed.
//
// Thread-safety: none; the memory tier calls it under its writer lock alone. A hit never calls it. A hit stamps its
// entry with the current epoch, and each newcomer begins a new epoch. The tier passes the stamps on later. So a policy
// learns of uses late, in their order only from epoch to epoch, and counted once an epoch.
// Ownership: owned by the tier; it holds facts about entries, never programs. Memory: bounded by a constant times the
// most entries that were held at one time. Time: O(1) a call unless said otherwise, choose() for each entry that it
// examines. Deterministic: equal calls give equal choices.
#pragma once

#include "base/policy_names.hpp"

#include <kiln/status.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

namespace kiln {

using EntryId = std::uint32_t;  // the tier's slot number: small, and used again after erased()
inline constexpr EntryId no_entry = std::numeric_limits<EntryId>::max();

struct EntryFacts {
  std::uint64_t key_hash = 0;  // of the key: the same each time that the program comes back
  std::uint64_t charge = 0;    // bytes in memory
  std::uint64_t saved_ns = 0;  // by a hit: the load or build, and what the first dispatch takes longer than a later one
};

// What must become free, the newcomer counted among what is held.
struct RoomNeeded {
  std::uint64_t programs = 0;
  std::uint64_t bytes = 0;
  EntryId newcomer = no_entry;  // for which room is made; it may itself be chosen: its caller gets it, it is not stored
};

class EvictionPolicy {
 public:
  using Evictable = std::function<bool(EntryId)>;

  EvictionPolicy() = default;
  EvictionPolicy(const EvictionPolicy&) = delete;
  EvictionPolicy& operator=(const EvictionPolicy&) = delete;
  virtual ~EvictionPolicy();

  // The entry is held from now on; this is its first use. REQUIRES: the id is not held; earlier uses were reported
  // before (where they were not, only their order suffers). std::bad_alloc leaves the policy as it was.
  virtual void inserted(EntryId id, const EntryFacts& facts) = 0;
  // The entry was used in `times` epochs since the last report. REQUIRES: the id is held; batches come oldest stamp
  // first.
  virtual void used(EntryId id, std::uint32_t times) noexcept = 0;
  // Its facts changed: the first dispatch was measured. REQUIRES: the id is held, and key_hash is as it was.
  virtual void updated(EntryId id, const EntryFacts& facts) noexcept = 0;
  // Called after the tier removed the entry. REQUIRES: inserted() was called for the id, and erased() was not.
  virtual void erased(EntryId id) noexcept = 0;
  // Names entries whose eviction makes the room, each once, all evictable; `victims` is emptied first. Where the
  // newcomer is refused it is named, and others only as far as room is needed without it. false: all that is evictable
  // is named and does not suffice. Evicts nothing: the caller calls erased() for those that it evicts, and may spare
  // any. REQUIRES: the newcomer, where there is one, was inserted; `evictable` is true for it. May throw
  // std::bad_alloc, and has then named what is in `victims`.
  virtual bool choose(const RoomNeeded& needed, const Evictable& evictable, std::vector<EntryId>& victims) = 0;
};

// unsupported: there is no policy of that name; the message lists those that there are. A name of
// removed_policy_names gives "cost". least_weight: what an entry takes of the room at the least, in bytes. Where
// programs are bounded too it is the bound in bytes ÷ the bound in programs, so that one measure stands for both.
Result<std::unique_ptr<EvictionPolicy>> make_eviction_policy(std::string_view name, std::uint64_t least_weight = 0);

// What a choose() has chosen so far against what is needed. Borrows the caller's list. Invariant: the list holds what
// was added, each once, the newcomer first where it is among them and then only as many others as are needed beside it.
class ChosenVictims {
 public:
  ChosenVictims(const RoomNeeded& needed, std::vector<EntryId>& victims) : needed_(needed), victims_(victims) {
    victims_.clear();
  }
  bool enough() const noexcept { return victims_.size() >= needed_.programs && freed_ >= needed_.bytes; }
  void add(EntryId id, std::uint64_t charge);

 private:
  const RoomNeeded needed_;
  std::uint64_t freed_ = 0;
  std::vector<EntryId>& victims_;
  std::vector<std::uint64_t> charges_;
};

// LruPolicy and SievePolicy: they know only when programs were used, not what they cost; both admit every newcomer.
//
// Thread-safety and ownership: as EvictionPolicy.

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
