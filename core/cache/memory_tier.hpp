// MemoryTier: programs held in this process, within bounds of programs and bytes; which leave is the policy's to say.
//
// A hit takes no lock, reads no clock and writes nothing that another thread writes: it finds the entry in a table made
// for readers, under a Guard; stamps it where its stamp is older than the present epoch, which every newcomer advances;
// and counts itself in its thread's slot. The policy is told the stamps when room is needed, so what it knows of uses
// is approximate: how often between two insertions is not seen, nor in what order.
// Thread-safety: every method from any thread; those that change what is held exclude each other. Ownership: shares
// programs with the handles it gives out; owns the policy. A program that a handle pins is not evicted; where only
// pinned ones are left a new program is not taken in and its user keeps it alone. A program belongs to one device:
// under another device's key of equal content it is absent.
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
  std::uint64_t build_ns = 0;    // recorded when it was built, in this process or an earlier one
  std::uint64_t restore_ns = 0;  // what it took to get it: loading it from disk, else building it
  bool ahead = false;            // nobody asked for it yet: taking it in is no use of it
};

struct MemoryFigures {
  std::uint64_t programs = 0;
  std::uint64_t bytes = 0;
  std::uint64_t evictions = 0;
  std::uint64_t hits = 0;
  std::uint64_t saved_ns = 0;  // build times of what was hit
};

// Uses of each program, several between two insertions counting once.
using UseCounts = std::vector<std::pair<Digest, std::uint64_t>>;

class MemoryTier {
 public:
  // own_threads: where none is to be started, guards stay as dear as they are when the tier is made.
  MemoryTier(MemoryBounds bounds, std::unique_ptr<EvictionPolicy> policy, OwnThreads own_threads = OwnThreads::yes);
  ~MemoryTier();

  // nullptr where it is not there.
  std::shared_ptr<const Program> get(const Digest& digest, const Device& device) noexcept;
  std::optional<HeldProgram> get_with_cost(const Digest& digest, const Device& device) noexcept;
  Guard enter() noexcept { return domain_.enter(); }
  // nullptr where it is not there. The pointer is valid while the guard lives.
  const Program* find(const Digest& digest, const Device& device, const Guard& guard) noexcept;

  // Takes the program in, evicting what nobody pins and the policy gives up. false: it is not held, because it does not
  // fit beside what is pinned or the policy refused it.
  bool insert(const Digest& digest, const Device& device, HeldProgram held);
  // Dispatches took so long: what the first takes longer than a later one is lost with the program.
  void dispatched_first(const Digest& digest, std::uint64_t ns) noexcept;
  void dispatched_later(const Digest& digest, std::uint64_t ns) noexcept;
  // Evicts what is over them and not pinned.
  void set_bounds(MemoryBounds bounds);

  MemoryFigures figures() const noexcept;
  // In no order.
  std::vector<Digest> held() const;
  // Since this was last asked.
  UseCounts take_uses();

 private:
  struct alignas(64) Entry {
    // What find() looks at fills one line of memory.
    Digest digest;
    const Device* device = nullptr;
    const Program* program_address = nullptr;
    std::uint64_t build_ns = 0;
    std::atomic<std::uint32_t> stamp{0};  // these two are written by readers, at most once an epoch each
    std::atomic<std::uint32_t> uses{0};

    std::shared_ptr<const Program> program;
    // The writer's.
    std::uint64_t charge = 0;
    std::uint64_t restore_ns = 0;
    std::uint64_t first_dispatch_ns = 0;  // 0: not known, as the next
    std::uint64_t later_dispatch_ns = 0;
    EntryId id = no_entry;
    std::uint32_t uses_told = 0;   // to the policy
    std::uint32_t uses_taken = 0;  // by take_uses()

    std::uint64_t hash() const noexcept { return DigestHash{}(digest); }
  };

  Entry* look_up(const Digest& digest, const Device& device) const noexcept;
  void touch(Entry& entry, ReaderSlot& slot) noexcept;
  // The rest is called under mutex_.
  void note_dispatch(const Digest& digest, std::uint64_t Entry::*which, std::uint64_t ns) noexcept;
  EntryFacts facts_of(const Entry& entry) const noexcept;
  RoomNeeded room_needed(EntryId newcomer) const noexcept;
  EntryId free_id();
  void tell_uses();
  void evict(EntryId id);
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
  std::uint64_t insertions_untold_ = 0;  // since the policy was told of uses
  std::uint64_t bytes_ = 0;
  std::uint64_t evictions_ = 0;
  UseCounts uses_of_evicted_;
};

}  // namespace kiln
