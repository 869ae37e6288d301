// WTinyLfuPolicy: newcomers enter a small window; who leaves the window is a candidate for the main part, and stays
// only where it was used more often, lately, than who would have to leave for it. Frequencies of all keys, held or not,
// stand in a sketch.
//
// Thread-safety and ownership: as EvictionPolicy. The main part is two queues by use: probation, and protected for what
// was used there, at most four fifths of the main part. The window takes a hundredth of the weight held, and one entry
// at the least. Invariants: each entry held is in exactly one queue; weights_[q] is the sum of the weights in q.
#pragma once

#include "cache/policy/eviction_policy.hpp"
#include "cache/policy/parts/entry_queues.hpp"
#include "cache/policy/parts/frequency_sketch.hpp"

#include <array>

namespace kiln {

class WTinyLfuPolicy final : public EvictionPolicy {
 public:
  explicit WTinyLfuPolicy(std::uint64_t least_weight) : least_weight_(least_weight) {}

  void inserted(EntryId id, const EntryFacts& facts) override;
  void used(EntryId id, std::uint32_t times) noexcept override;
  void updated(EntryId id, const EntryFacts& facts) noexcept override;
  void erased(EntryId id) noexcept override;
  bool choose(const RoomNeeded& needed, const Evictable& evictable, std::vector<EntryId>& victims) override;

 private:
  static constexpr EntryQueues::Queue window = 0;
  static constexpr EntryQueues::Queue probation = 1;
  static constexpr EntryQueues::Queue guarded = 2;  // what the literature calls protected
  struct Entry {
    EntryFacts facts;
    std::uint64_t chosen_in = 0;  // the choose() that named it
  };
  class Walk;

  std::uint64_t weight(EntryId id) const noexcept;
  std::uint32_t frequency(EntryId id) const noexcept { return sketch_.estimate(entries_[id].facts.key_hash); }
  void move(EntryId id, EntryQueues::Queue to) noexcept;
  void bound_guarded() noexcept;
  void shrink_window() noexcept;

  const std::uint64_t least_weight_;
  EntryQueues queues_{3};
  std::array<std::uint64_t, 3> weights_{};
  std::vector<Entry> entries_;
  FrequencySketch sketch_;
  // The oldest of those that the window gave up for the latest newcomer: it and what is newer in probation are the
  // candidates. no_entry: there are none.
  EntryId first_candidate_ = no_entry;
  std::uint64_t choices_ = 0;
};

}  // namespace kiln
