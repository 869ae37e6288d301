// EntryQueues: a few doubly linked queues over entry numbers, each entry in at most one of them.
//
// Thread-safety: none. Ownership: a value; the links lie in one table that grows to the largest number seen.
// Invariants: next() and older() of neighbours agree; size(q) is the number of entries reached from newest(q).
#pragma once

#include "cache/policy/eviction_policy.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kiln {

class EntryQueues {
 public:
  using Queue = std::uint32_t;
  explicit EntryQueues(Queue count) : ends_(count) {}

  // Makes place for the number: push_newest() needs it once before. May throw std::bad_alloc.
  void reserve(EntryId id);

  void push_newest(Queue queue, EntryId id) noexcept;  // REQUIRES: in no queue, and reserved
  void remove(EntryId id) noexcept;                    // REQUIRES: in a queue
  void move_newest(Queue queue, EntryId id) noexcept;  // REQUIRES: in a queue

  // no_entry where there is none.
  EntryId newest(Queue queue) const noexcept { return ends_[queue].newest; }
  EntryId oldest(Queue queue) const noexcept { return ends_[queue].oldest; }
  EntryId newer(EntryId id) const noexcept { return links_[id].newer; }
  EntryId older(EntryId id) const noexcept { return links_[id].older; }

  std::size_t size(Queue queue) const noexcept { return ends_[queue].size; }
  Queue queue_of(EntryId id) const noexcept { return links_[id].queue; }  // REQUIRES: in a queue

 private:
  static constexpr Queue no_queue = ~Queue{0};
  struct Link {
    EntryId newer = no_entry;
    EntryId older = no_entry;
    Queue queue = no_queue;
  };
  struct Ends {
    EntryId newest = no_entry;
    EntryId oldest = no_entry;
    std::size_t size = 0;
  };

  std::vector<Link> links_;
  std::vector<Ends> ends_;
};

}  // namespace kiln
