// S3FifoPolicy: newcomers wait in a small queue; those used there go on to the main queue, the others leave and are
// remembered as ghosts; one that comes back while it is remembered goes to the main queue at once. The main queue is a
// queue too: what was used since it last came to its end goes to its beginning.
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
