#include "cache/policy/lru.hpp"

#include "cache/policy/parts/room.hpp"

namespace kiln {

void LruPolicy::inserted(EntryId id, const EntryFacts& facts) {
  by_use_.reserve(id);
  if (id >= charges_.size()) charges_.resize(std::size_t{id} + 1);
  charges_[id] = facts.charge;
  by_use_.push_newest(0, id);
}

void LruPolicy::used(EntryId id, std::uint32_t times) noexcept {
  if (times != 0) by_use_.move_newest(0, id);
}

void LruPolicy::updated(EntryId id, const EntryFacts& facts) noexcept { charges_[id] = facts.charge; }

void LruPolicy::erased(EntryId id) noexcept { by_use_.remove(id); }

bool LruPolicy::choose(const RoomNeeded& needed, const Evictable& evictable, std::vector<EntryId>& victims) {
  Room room(needed, victims);
  for (EntryId id = by_use_.oldest(0); id != no_entry && !room.enough(); id = by_use_.newer(id)) {
    if (evictable(id)) room.add(id, charges_[id]);
  }
  return room.enough();
}

}  // namespace kiln
