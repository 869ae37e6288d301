#include "cache/policy/wtinylfu.hpp"

#include "cache/policy/parts/room.hpp"

#include <algorithm>

namespace kiln {
namespace {

constexpr std::uint64_t window_part = 100;  // the window's share is one part in so many
constexpr std::uint64_t guarded_fifths = 4;

}  // namespace

// Those that may have to leave for a candidate, in the order in which they would: probation up to the candidates, then
// the protected ones, then the window; oldest first.
class WTinyLfuPolicy::Walk {
 public:
  Walk(const EntryQueues& queues, EntryId first_candidate, const Evictable& evictable)
      : queues_(queues), evictable_(evictable), end_(first_candidate), at_(queues.oldest(probation)) {}

  // no_entry at the end.
  EntryId current() {
    while (true) {
      while (at_ != no_entry && at_ != end_ && !evictable_(at_)) at_ = queues_.newer(at_);
      if (at_ != no_entry && at_ != end_) return at_;
      if (queue_ == window) return no_entry;
      queue_ = queue_ == probation ? guarded : window;
      at_ = queues_.oldest(queue_);
    }
  }
  void advance() { at_ = queues_.newer(at_); }

 private:
  const EntryQueues& queues_;
  const Evictable& evictable_;
  const EntryId end_;
  EntryQueues::Queue queue_ = probation;
  EntryId at_;
};

std::uint64_t WTinyLfuPolicy::weight(EntryId id) const noexcept {
  return std::max(entries_[id].facts.charge, least_weight_);
}

void WTinyLfuPolicy::move(EntryId id, EntryQueues::Queue to) noexcept {
  if (id == first_candidate_) first_candidate_ = queues_.newer(id);
  weights_[queues_.queue_of(id)] -= weight(id);
  weights_[to] += weight(id);
  queues_.move_newest(to, id);
}

void WTinyLfuPolicy::inserted(EntryId id, const EntryFacts& facts) {
  queues_.reserve(id);
  if (id >= entries_.size()) entries_.resize(std::size_t{id} + 1);
  sketch_.reserve(queues_.size(window) + queues_.size(probation) + queues_.size(guarded) + 1);
  entries_[id] = {facts, 0};
  sketch_.add(facts.key_hash, 1);
  queues_.push_newest(window, id);
  weights_[window] += weight(id);
  shrink_window();
}

void WTinyLfuPolicy::used(EntryId id, std::uint32_t times) noexcept {
  if (times == 0) return;
  sketch_.add(entries_[id].facts.key_hash, times);
  move(id, queues_.queue_of(id) == window ? window : guarded);
  bound_guarded();
}

void WTinyLfuPolicy::bound_guarded() noexcept {
  while (queues_.size(guarded) > 1 &&
         weights_[guarded] > (weights_[guarded] + weights_[probation]) / (guarded_fifths + 1) * guarded_fifths) {
    move(queues_.oldest(guarded), probation);
  }
}

void WTinyLfuPolicy::updated(EntryId id, const EntryFacts& facts) noexcept {
  std::uint64_t& sum = weights_[queues_.queue_of(id)];
  sum -= weight(id);
  entries_[id].facts = facts;
  sum += weight(id);
}

void WTinyLfuPolicy::erased(EntryId id) noexcept {
  if (id == first_candidate_) first_candidate_ = queues_.newer(id);
  weights_[queues_.queue_of(id)] -= weight(id);
  queues_.remove(id);
}

void WTinyLfuPolicy::shrink_window() noexcept {
  first_candidate_ = no_entry;
  EntryId first = no_entry;
  const std::uint64_t share = (weights_[window] + weights_[probation] + weights_[guarded]) / window_part;
  while (queues_.size(window) > 1 && weights_[window] > share) {
    const EntryId id = queues_.oldest(window);
    move(id, probation);
    if (first == no_entry) first = id;
  }
  first_candidate_ = first;
}

bool WTinyLfuPolicy::choose(const RoomNeeded& needed, const Evictable& evictable, std::vector<EntryId>& victims) {
  Room room(needed, victims);
  ++choices_;
  const EntryId first_candidate = needed.newcomer != no_entry ? first_candidate_ : no_entry;
  EntryId candidate = first_candidate;
  const Evictable others = [&](EntryId id) { return id != needed.newcomer && evictable(id); };
  Walk walk(queues_, candidate, others);
  const auto name = [&](EntryId id) {
    entries_[id].chosen_in = choices_;
    room.add(id, entries_[id].facts.charge);
  };
  while (!room.enough()) {
    while (candidate != no_entry && !others(candidate)) candidate = queues_.newer(candidate);
    EntryId victim = walk.current();
    if (victim == no_entry && candidate == no_entry) break;
    if (victim != no_entry && (candidate == no_entry || frequency(candidate) > frequency(victim))) {
      walk.advance();
    } else {
      victim = candidate;
    }
    name(victim);
    if (candidate != no_entry) candidate = queues_.newer(candidate);
  }
  // Candidates that had won their place, and in the end the newcomer.
  for (EntryId id = first_candidate; id != no_entry && !room.enough(); id = queues_.newer(id)) {
    if (entries_[id].chosen_in != choices_ && others(id)) name(id);
  }
  if (!room.enough() && needed.newcomer != no_entry) name(needed.newcomer);
  return room.enough();
}

}  // namespace kiln
