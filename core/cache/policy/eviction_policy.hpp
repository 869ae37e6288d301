// EvictionPolicy: which program leaves memory when room is needed.
//
// Thread-safety: none; the memory tier calls it under its writer lock alone. A hit never calls it: a hit stamps its
// entry with the current epoch, which each newcomer advances, and the stamps are told later, so every policy works from
// uses that are late, in order only from epoch to epoch, and counted once an epoch.
// Ownership: owned by the tier; it holds facts about entries, never programs. Memory: bounded by a constant times the
// most entries that were held at one time. Time: O(1) or O(log n) a call unless said otherwise, choose() for each entry
// that it looks at. Deterministic: equal calls give equal choices.
#pragma once

#include <kiln/status.hpp>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace kiln {

using EntryId = std::uint32_t;  // the tier's slot number: small, and used again after erased()
inline constexpr EntryId no_entry = std::numeric_limits<EntryId>::max();

struct EntryFacts {
  std::uint64_t key_hash =
      0;  // of the key, the same each time that the program comes back: what ghosts and sketches know
  std::uint64_t charge = 0;  // bytes in memory
  std::uint64_t saved_ns =
      0;  // what a hit saves: loading from disk, or building, and what the first dispatch takes longer
};

// What must become free, the newcomer counted among what is held.
struct RoomNeeded {
  std::uint64_t programs = 0;
  std::uint64_t bytes = 0;
  EntryId newcomer =
      no_entry;  // the entry for which room is made: it may itself be chosen, and is then served uncached
};

class EvictionPolicy {
 public:
  using Evictable = std::function<bool(EntryId)>;

  EvictionPolicy() = default;
  EvictionPolicy(const EvictionPolicy&) = delete;
  EvictionPolicy& operator=(const EvictionPolicy&) = delete;
  virtual ~EvictionPolicy();

  // The entry is held from now on; this is its first use. REQUIRES: the id is not held; uses before this moment were
  // told before it (where they were not, only the order suffers). std::bad_alloc leaves the policy as it was.
  virtual void inserted(EntryId id, const EntryFacts& facts) = 0;
  // The entry was used in `times` epochs since this was last told. REQUIRES: the id is held; batches oldest stamp
  // first.
  virtual void used(EntryId id, std::uint32_t times) noexcept = 0;
  // Its facts changed: the first dispatch was measured. REQUIRES: the id is held, and key_hash is as it was.
  virtual void updated(EntryId id, const EntryFacts& facts) noexcept = 0;
  // The entry is gone, whoever chose it. REQUIRES: the id is held.
  virtual void erased(EntryId id) noexcept = 0;
  // Names entries whose leaving makes the room, each once, all evictable; `victims` is emptied first. Where the
  // newcomer is refused it is named, and others only as far as room is needed without it. false: all that is evictable
  // is named and does not suffice. Evicts nothing: the caller calls erased() for those that it lets go, of which it
  // may spare any. REQUIRES: the newcomer, where there is one, was inserted; `evictable` answers true for it. May throw
  // std::bad_alloc, and has then named what is in `victims`.
  virtual bool choose(const RoomNeeded& needed, const Evictable& evictable, std::vector<EntryId>& victims) = 0;
};

// "lru", "sieve", "s3fifo", "wtinylfu", "cost". unsupported: there is no policy of that name; with those that there
// are. least_weight: what an entry takes of the room at the least, in bytes. Where programs are bounded too it is the
// bound in bytes ÷ the bound in programs, so that one measure stands for both.
Result<std::unique_ptr<EvictionPolicy>> make_eviction_policy(std::string_view name, std::uint64_t least_weight = 0);

}  // namespace kiln
