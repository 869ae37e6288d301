// S3FifoPolicy: newcomers wait in a small queue; those used there go on to the main queue, the others leave and are
// remembered as ghosts; one that comes back while it is remembered goes to the main queue at once. The main queue is a
// queue too: what was used since it last came to its end goes to its beginning, with one use less.
//
// Source: Yang, Zhang, Qiu, Yue, Rashmi: FIFO Queues are All You Need for Cache Eviction, SOSP 2023, algorithm 1: a
// small queue of a tenth, uses counted to three, cleared on the way to the main queue. Three things differ. There an
// entry must have been used twice to leave the small queue for the main one; here one told use is enough, because what
// is told is an epoch's uses, and those of the first epoch are not. A ghost is remembered for as many departures as
// entries were held at one time (by a count, as in the paper's own table), not for as many as the main queue holds. And
// the small queue's share is judged with the newcomer among what is held.
//
// Thread-safety and ownership: as EvictionPolicy. A use within an entry's first epoch is not told, so one told use is
// the second. The newcomer is chosen last. Invariants: each entry held is in exactly one queue; weights_[q] is the sum
// of the weights in q; at most as many ghosts as entries were held at one time.
#pragma once

#include "cache/policy/eviction_policy.hpp"
#include "cache/policy/parts/entry_queues.hpp"
#include "cache/policy/parts/ghost_table.hpp"

#include <array>

namespace kiln {

class S3FifoPolicy final : public EvictionPolicy {
 public:
  explicit S3FifoPolicy(std::uint64_t least_weight) : least_weight_(least_weight) {}

  void inserted(EntryId id, const EntryFacts& facts) override;
  void used(EntryId id, std::uint32_t times) noexcept override;
  void updated(EntryId id, const EntryFacts& facts) noexcept override;
  void erased(EntryId id) noexcept override;
  bool choose(const RoomNeeded& needed, const Evictable& evictable, std::vector<EntryId>& victims) override;

 private:
  struct Entry {
    EntryFacts facts;
    std::uint32_t uses = 0;
  };
  static constexpr EntryQueues::Queue small = 0;
  static constexpr EntryQueues::Queue main = 1;

  std::uint64_t weight(EntryId id) const noexcept;
  void move(EntryId id, EntryQueues::Queue to) noexcept;

  const std::uint64_t least_weight_;
  EntryQueues queues_{2};
  std::array<std::uint64_t, 2> weights_{};
  std::vector<Entry> entries_;
  struct Ghost {};
  GhostTable<Ghost> ghosts_;
};

}  // namespace kiln
