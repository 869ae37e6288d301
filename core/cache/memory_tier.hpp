// MemoryTier: the programs in the memory of this process, limited in number and bytes. An EvictionPolicy selects what
// to evict.
//
// A hit takes no lock, reads no clock and writes no shared cache line except the entry's stamp, once per epoch. It
// finds the entry in a read-mostly table under a Guard and counts in the slot of its thread. Each insertion starts a
// new epoch. The policy receives the stamps only when room is needed. It therefore knows which programs were used
// between two insertions, but not how often or in which order.
// Pinned programs are not evicted. If only pinned programs remain, a new program is not inserted and its user holds it
// alone. A program belongs to one device; a lookup for another device does not find it.
// Thread-safety: every method from any thread; writers exclude each other. Ownership: owns the policy; shares programs
// with the handles.
#pragma once

#include "base/read_mostly_table.hpp"
#include "cache/epoch_domain.hpp"
#include "cache/eviction_policy.hpp"

#include <kiln/device.hpp>
#include <kiln/program.hpp>
#include <kiln/program_cache.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace kiln {

struct MemoryBounds {
  std::uint64_t programs = 0;
  std::uint64_t bytes = 0;
  bool operator==(const MemoryBounds&) const = default;
};

struct HeldProgram {
  std::shared_ptr<const Program> program;
  std::uint64_t build_ns = 0;    // duration of the original build, in this process or an earlier one
  std::uint64_t restore_ns = 0;  // time to obtain it again: load from disk, or build
  bool ahead = false;            // preloaded: the insertion does not count as a use
};

struct MemoryFigures {
  std::uint64_t programs = 0;
  std::uint64_t bytes = 0;
  std::uint64_t evictions = 0;
  std::uint64_t hits = 0;
  std::uint64_t saved_ns = 0;  // sum of the build times that hits avoided
};

// Uses of each program. Several uses between two insertions count once.
using UseCounts = std::vector<std::pair<Digest, std::uint64_t>>;

class MemoryTier {
 public:
  // own_threads: whether the tier may start a thread to make guards cheaper (EpochDomain::prefer_cheap_guards).
  MemoryTier(MemoryBounds bounds, std::unique_ptr<EvictionPolicy> policy, OwnThreads own_threads = OwnThreads::yes);
  ~MemoryTier();

  // nullptr: not in the cache.
  std::shared_ptr<const Program> get(const Digest& digest, const Device& device) noexcept;
  std::optional<HeldProgram> get_with_cost(const Digest& digest, const Device& device) noexcept;
  Guard enter() noexcept { return domain_.enter(); }
  // nullptr: not in the cache. The pointer is valid for the lifetime of the guard.
  const Program* find(const Digest& digest, const Device& device, const Guard& guard) noexcept;

  // Inserts the program and evicts unpinned programs as needed. false: not inserted, because it does not fit beside the
  // pinned programs or the policy refused it.
  bool insert(const Digest& digest, const Device& device, HeldProgram held);
  // Remove a program, or all of a device. Handles and guards keep what they hold.
  void remove(const Digest& digest, const Device& device);
  void remove_all(const Device& device);
  // Record dispatch times. The difference between first and later dispatch is part of the cost of an eviction.
  // dispatched_first() returns how long the program's original build took; 0 where it is not held.
  std::uint64_t dispatched_first(const Digest& digest, std::uint64_t ns) noexcept;
  void dispatched_later(const Digest& digest, std::uint64_t ns) noexcept;
  // Evicts unpinned programs above the new bounds.
  void set_bounds(MemoryBounds bounds);

  MemoryFigures figures() const noexcept;
  // Unordered.
  std::vector<Digest> held() const;
  // Returns the uses since the last call.
  UseCounts take_uses();

 private:
  struct alignas(64) Entry {
    // find() reads only the first cache line.
    Digest digest;
    const Device* device = nullptr;
    const Program* program_address = nullptr;
    std::uint64_t build_ns = 0;
    std::atomic<std::uint32_t> stamp{0};  // readers write these two at most once per epoch
    std::atomic<std::uint32_t> uses{0};

    std::shared_ptr<const Program> program;
    // Used by writers only.
    std::uint64_t charge = 0;
    std::uint64_t restore_ns = 0;
    std::uint64_t first_dispatch_ns = 0;  // 0: unknown; also for the next
    std::uint64_t later_dispatch_ns = 0;
    EntryId id = no_entry;
    std::uint32_t uses_told = 0;   // reported to the policy
    std::uint32_t uses_taken = 0;  // reported by take_uses()

    std::uint64_t hash() const noexcept { return DigestHash{}(digest); }
  };

  Entry* look_up(const Digest& digest, const Device& device) const noexcept;
  void touch(Entry& entry, ReaderSlot& slot) noexcept;
  // REQUIRES for all below: mutex_ is held.
  std::uint64_t note_dispatch(const Digest& digest, std::uint64_t Entry::*which, std::uint64_t ns) noexcept;
  EntryFacts facts_of(const Entry& entry) const noexcept;
  RoomNeeded room_needed(EntryId newcomer) const noexcept;
  EntryId free_id();
  void tell_uses();
  void evict(EntryId id);
  void take_out(EntryId id);
  void note_uses(Entry& entry, UseCounts& into);

  const OwnThreads own_threads_;
  EpochDomain domain_;
  alignas(64) std::atomic<std::uint32_t> use_epoch_{1};
  alignas(64) mutable std::mutex mutex_;
  MemoryBounds bounds_;
  const std::unique_ptr<EvictionPolicy> policy_;
  ReadMostlyTable<Entry> table_;
  std::vector<std::shared_ptr<Entry>> entries_;  // by id; null: the id is free
  std::vector<EntryId> free_ids_;
  std::uint64_t held_ = 0;
  std::uint64_t insertions_untold_ = 0;  // since the last report of uses to the policy
  std::uint64_t bytes_ = 0;
  std::uint64_t evictions_ = 0;
  UseCounts uses_of_evicted_;
};

}  // namespace kiln
