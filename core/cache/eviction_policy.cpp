#include "cache/eviction_policy.hpp"

#include "cache/cost_policy.hpp"

#include <algorithm>
#include <string>

namespace kiln {

EvictionPolicy::~EvictionPolicy() = default;

Result<std::unique_ptr<EvictionPolicy>> make_eviction_policy(std::string_view name, std::uint64_t least_weight) {
  using Made = std::unique_ptr<EvictionPolicy>;
  const bool removed = std::ranges::find(removed_policy_names, name) != std::end(removed_policy_names);
  if (name == "cost" || removed) return Made(std::make_unique<CostPolicy>(least_weight));
  if (name == "lru") return Made(std::make_unique<LruPolicy>());
  if (name == "sieve") return Made(std::make_unique<SievePolicy>());
  std::string known;
  for (const std::string_view one : eviction_policy_names) {
    known += (known.empty() ? "'" : ", '") + std::string(one) + "'";
  }
  return unsupported("policy '" + std::string(name) + "': expected one of " + known);
}

void ChosenVictims::add(EntryId id, std::uint64_t charge) {
  victims_.push_back(id);
  charges_.push_back(charge);
  freed_ += charge;
  if (id != needed_.newcomer) return;
  std::rotate(victims_.begin(), victims_.end() - 1, victims_.end());
  std::rotate(charges_.begin(), charges_.end() - 1, charges_.end());
  while (victims_.size() > 1 && victims_.size() > needed_.programs && freed_ - charges_.back() >= needed_.bytes) {
    freed_ -= charges_.back();
    victims_.pop_back();
    charges_.pop_back();
  }
}

void EntryQueue::reserve(EntryId id) {
  if (id >= links_.size()) links_.resize(std::size_t{id} + 1);
}

void EntryQueue::push_newest(EntryId id) noexcept {
  links_[id] = {no_entry, newest_};
  (newest_ == no_entry ? oldest_ : links_[newest_].newer) = id;
  newest_ = id;
  ++size_;
}

void EntryQueue::remove(EntryId id) noexcept {
  const Link link = links_[id];
  (link.newer == no_entry ? newest_ : links_[link.newer].older) = link.older;
  (link.older == no_entry ? oldest_ : links_[link.older].newer) = link.newer;
  --size_;
  links_[id] = {};
}

void EntryQueue::move_to_newest(EntryId id) noexcept {
  remove(id);
  push_newest(id);
}

void LruPolicy::inserted(EntryId id, const EntryFacts& facts) {
  by_use_.reserve(id);
  if (id >= charges_.size()) charges_.resize(std::size_t{id} + 1);
  charges_[id] = facts.charge;
  by_use_.push_newest(id);
}

void LruPolicy::used(EntryId id, std::uint32_t times) noexcept {
  if (times != 0) by_use_.move_to_newest(id);
}

void LruPolicy::updated(EntryId id, const EntryFacts& facts) noexcept { charges_[id] = facts.charge; }

void LruPolicy::erased(EntryId id) noexcept { by_use_.remove(id); }

bool LruPolicy::choose(const RoomNeeded& needed, const Evictable& evictable, std::vector<EntryId>& victims) {
  ChosenVictims chosen(needed, victims);
  for (EntryId id = by_use_.oldest(); id != no_entry && !chosen.enough(); id = by_use_.newer(id)) {
    if (evictable(id)) chosen.add(id, charges_[id]);
  }
  return chosen.enough();
}

void SievePolicy::inserted(EntryId id, const EntryFacts& facts) {
  by_arrival_.reserve(id);
  if (id >= entries_.size()) entries_.resize(std::size_t{id} + 1);
  entries_[id] = {facts.charge, 0, false};
  by_arrival_.push_newest(id);
}

void SievePolicy::used(EntryId id, std::uint32_t times) noexcept { entries_[id].visited |= times != 0; }

void SievePolicy::updated(EntryId id, const EntryFacts& facts) noexcept { entries_[id].charge = facts.charge; }

void SievePolicy::erased(EntryId id) noexcept {
  if (hand_ == id) hand_ = by_arrival_.newer(id);
  by_arrival_.remove(id);
}

bool SievePolicy::choose(const RoomNeeded& needed, const Evictable& evictable, std::vector<EntryId>& victims) {
  ChosenVictims chosen(needed, victims);
  ++choices_;
  // One round clears every mark, the next finds every entry without one.
  for (std::size_t steps = 2 * by_arrival_.size(); steps != 0 && !chosen.enough(); --steps) {
    if (hand_ == no_entry) hand_ = by_arrival_.oldest();
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
    chosen.add(at, entry.charge);
  }
  if (!chosen.enough() && needed.newcomer != no_entry) chosen.add(needed.newcomer, entries_[needed.newcomer].charge);
  return chosen.enough();
}

}  // namespace kiln
