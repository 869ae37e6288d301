#include "cache/policy/cost.hpp"

#include "cache/policy/parts/mix.hpp"
#include "cache/policy/parts/room.hpp"

#include <algorithm>
#include <functional>

namespace kiln {
namespace {

constexpr std::size_t least_ghosts = 256;
constexpr std::size_t ghosts_an_entry = 8;
constexpr std::size_t most_ranked = 1024;
constexpr double half_life_uses = 32;  // for each entry held

}  // namespace

double CostPolicy::half_life() const noexcept { return half_life_uses * static_cast<double>(held_.size()); }

void CostPolicy::inserted(EntryId id, const EntryFacts& facts) {
  if (id >= entries_.size()) entries_.resize(std::size_t{id} + 1);
  ghosts_.reserve(std::max(least_ghosts, ghosts_an_entry * (held_.size() + 1)));
  held_.push_back(id);
  Entry& entry = entries_[id];
  entry = {};
  entry.facts = facts;
  entry.place = held_.size() - 1;
  if (const auto before = ghosts_.take(facts.key_hash)) entry.history = *before;
  used(id, 1);
}

void CostPolicy::used(EntryId id, std::uint32_t times) noexcept {
  if (times == 0) return;
  now_ += times;
  entries_[id].history.used(now_, times, half_life());
  entries_[id].prospect = -1;
}

void CostPolicy::updated(EntryId id, const EntryFacts& facts) noexcept { entries_[id].facts = facts; }

void CostPolicy::erased(EntryId id) noexcept {
  ghosts_.note(entries_[id].facts.key_hash, entries_[id].history);
  const std::size_t place = entries_[id].place;
  held_[place] = held_.back();
  entries_[held_[place]].place = place;
  held_.pop_back();
}

double CostPolicy::worth(EntryId id) noexcept {
  Entry& entry = entries_[id];
  const std::uint32_t age_class = entry.history.age_class(now_);
  if (entry.prospect < 0 || entry.age_class != age_class) {
    entry.age_class = age_class;
    entry.prospect = entry.history.prospect(age_class, half_life());
  }
  const std::uint64_t weight = std::max({entry.facts.charge, least_weight_, std::uint64_t{1}});
  const std::uint64_t saved_ns = std::max<std::uint64_t>(entry.facts.saved_ns, 1);
  return entry.prospect * static_cast<double>(saved_ns) / static_cast<double>(weight);
}

void CostPolicy::rank_all(const RoomNeeded& needed, const Evictable& evictable) {
  ranked_.clear();
  for (const EntryId id : held_) {
    if (id != needed.newcomer && evictable(id)) ranked_.emplace_back(worth(id), id);
  }
}

void CostPolicy::rank_some(const RoomNeeded& needed, const Evictable& evictable) {
  ranked_.clear();
  for (std::size_t i = 0; i < most_ranked; ++i) {
    const EntryId id = held_[mix(++draws_) % held_.size()];
    if (id != needed.newcomer && evictable(id)) ranked_.emplace_back(worth(id), id);
  }
  std::sort(ranked_.begin(), ranked_.end());
  ranked_.erase(std::unique(ranked_.begin(), ranked_.end()), ranked_.end());
}

bool CostPolicy::take_least(const RoomNeeded& needed, Room& room) {
  bool admitted = true;
  std::make_heap(ranked_.begin(), ranked_.end(), std::greater<>());
  while (!room.enough() && !ranked_.empty()) {
    const auto [least, id] = ranked_.front();
    if (admitted && needed.newcomer != no_entry && least > worth(needed.newcomer)) {
      admitted = false;
      room.add(needed.newcomer, entries_[needed.newcomer].facts.charge);
      continue;
    }
    room.add(id, entries_[id].facts.charge);
    std::pop_heap(ranked_.begin(), ranked_.end(), std::greater<>());
    ranked_.pop_back();
  }
  return admitted;
}

bool CostPolicy::choose(const RoomNeeded& needed, const Evictable& evictable, std::vector<EntryId>& victims) {
  if (held_.size() > most_ranked) {
    Room room(needed, victims);
    rank_some(needed, evictable);
    take_least(needed, room);
    if (room.enough()) return true;
  }
  Room room(needed, victims);
  rank_all(needed, evictable);
  const bool admitted = take_least(needed, room);
  if (admitted && !room.enough() && needed.newcomer != no_entry) {
    room.add(needed.newcomer, entries_[needed.newcomer].facts.charge);
  }
  return room.enough();
}

}  // namespace kiln
