#include "cache/policy/sieve.hpp"

#include "cache/policy/parts/room.hpp"

namespace kiln {

void SievePolicy::inserted(EntryId id, const EntryFacts& facts) {
  by_arrival_.reserve(id);
  if (id >= entries_.size()) entries_.resize(std::size_t{id} + 1);
  entries_[id] = {facts.charge, 0, false};
  by_arrival_.push_newest(0, id);
}

void SievePolicy::used(EntryId id, std::uint32_t times) noexcept { entries_[id].visited |= times != 0; }

void SievePolicy::updated(EntryId id, const EntryFacts& facts) noexcept { entries_[id].charge = facts.charge; }

void SievePolicy::erased(EntryId id) noexcept {
  if (hand_ == id) hand_ = by_arrival_.newer(id);
  by_arrival_.remove(id);
}

bool SievePolicy::choose(const RoomNeeded& needed, const Evictable& evictable, std::vector<EntryId>& victims) {
  Room room(needed, victims);
  ++choices_;
  // One round clears every mark, the next finds every entry without one.
  for (std::size_t steps = 2 * by_arrival_.size(0); steps != 0 && !room.enough(); --steps) {
    if (hand_ == no_entry) hand_ = by_arrival_.oldest(0);
    const EntryId at = hand_;
    hand_ = by_arrival_.newer(at);
    if (hand_ == needed.newcomer) hand_ = no_entry;  // the hand came to the end before the newcomer did
    Entry& entry = entries_[at];
    if (at == needed.newcomer || entry.chosen_in == choices_ || !evictable(at)) continue;
    if (entry.visited) {
      entry.visited = false;
      continue;
    }
    entry.chosen_in = choices_;
    room.add(at, entry.charge);
  }
  if (!room.enough() && needed.newcomer != no_entry) room.add(needed.newcomer, entries_[needed.newcomer].charge);
  return room.enough();
}

}  // namespace kiln
