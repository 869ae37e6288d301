#include "cache/policy/parts/entry_queues.hpp"

namespace kiln {

void EntryQueues::reserve(EntryId id) {
  if (id >= links_.size()) links_.resize(std::size_t{id} + 1);
}

void EntryQueues::push_newest(Queue queue, EntryId id) noexcept {
  Ends& ends = ends_[queue];
  links_[id] = {no_entry, ends.newest, queue};
  (ends.newest == no_entry ? ends.oldest : links_[ends.newest].newer) = id;
  ends.newest = id;
  ++ends.size;
}

void EntryQueues::remove(EntryId id) noexcept {
  const Link link = links_[id];
  Ends& ends = ends_[link.queue];
  (link.newer == no_entry ? ends.newest : links_[link.newer].older) = link.older;
  (link.older == no_entry ? ends.oldest : links_[link.older].newer) = link.newer;
  --ends.size;
  links_[id] = {};
}

void EntryQueues::move_newest(Queue queue, EntryId id) noexcept {
  remove(id);
  push_newest(queue, id);
}

}  // namespace kiln
