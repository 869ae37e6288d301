#include "cache/policy/s3fifo.hpp"

#include "cache/policy/parts/room.hpp"

#include <algorithm>

namespace kiln {
namespace {

constexpr std::uint32_t most_uses = 3;
constexpr std::uint64_t small_part = 10;  // the small queue's share is one part in so many

}  // namespace

std::uint64_t S3FifoPolicy::weight(EntryId id) const noexcept {
  return std::max(entries_[id].facts.charge, least_weight_);
}

void S3FifoPolicy::move(EntryId id, EntryQueues::Queue to) noexcept {
  weights_[queues_.queue_of(id)] -= weight(id);
  weights_[to] += weight(id);
  queues_.move_newest(to, id);
}

void S3FifoPolicy::inserted(EntryId id, const EntryFacts& facts) {
  queues_.reserve(id);
  if (id >= entries_.size()) entries_.resize(std::size_t{id} + 1);
  ghosts_.reserve(queues_.size(small) + queues_.size(main) + 1);
  entries_[id] = {facts, 0};
  const EntryQueues::Queue queue = ghosts_.take(facts.key_hash) ? main : small;
  queues_.push_newest(queue, id);
  weights_[queue] += weight(id);
}

void S3FifoPolicy::used(EntryId id, std::uint32_t times) noexcept {
  std::uint32_t& uses = entries_[id].uses;
  uses = std::min(most_uses, uses + std::min(most_uses, times));
}

void S3FifoPolicy::updated(EntryId id, const EntryFacts& facts) noexcept {
  std::uint64_t& sum = weights_[queues_.queue_of(id)];
  sum -= weight(id);
  entries_[id].facts = facts;
  sum += weight(id);
}

void S3FifoPolicy::erased(EntryId id) noexcept {
  const EntryQueues::Queue queue = queues_.queue_of(id);
  weights_[queue] -= weight(id);
  queues_.remove(id);
  if (queue == small) ghosts_.note(entries_[id].facts.key_hash, {});
}

bool S3FifoPolicy::choose(const RoomNeeded& needed, const Evictable& evictable, std::vector<EntryId>& victims) {
  Room room(needed, victims);
  std::array<std::uint64_t, 2> left = weights_;  // without those chosen
  std::array<EntryId, 2> at{queues_.oldest(small), queues_.oldest(main)};
  while (!room.enough() && (at[small] != no_entry || at[main] != no_entry)) {
    const bool over = left[small] > (left[small] + left[main]) / small_part;
    const EntryQueues::Queue queue = at[main] == no_entry || (over && at[small] != no_entry) ? small : main;
    const EntryId id = at[queue];
    at[queue] = queues_.newer(id);
    if (id == needed.newcomer || !evictable(id)) continue;
    Entry& entry = entries_[id];
    if (entry.uses == 0) {
      room.add(id, entry.facts.charge);
      left[queue] -= weight(id);
      continue;
    }
    // Spared: from the small queue as one not used yet, in the main queue at the price of one use.
    entry.uses = queue == small ? 0 : entry.uses - 1;
    left[queue] -= weight(id);
    left[main] += weight(id);
    move(id, main);
    if (at[main] == no_entry) at[main] = id;
  }
  // By the definition room is made before the newcomer comes in: it stays the newest of its queue.
  if (needed.newcomer != no_entry) queues_.move_newest(queues_.queue_of(needed.newcomer), needed.newcomer);
  if (!room.enough() && needed.newcomer != no_entry) {
    room.add(needed.newcomer, entries_[needed.newcomer].facts.charge);
  }
  return room.enough();
}

}  // namespace kiln
