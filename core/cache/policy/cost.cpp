#include "cache/policy/cost.hpp"

#include "cache/policy/parts/room.hpp"

#include <algorithm>
#include <cmath>

namespace kiln {
namespace {

constexpr std::size_t least_ghosts = 1024;
constexpr std::size_t ghosts_an_entry = 8;
constexpr double half_life_uses = 32;  // for each entry held

double sum_of_logs(double a, double b) noexcept {
  const double larger = std::max(a, b);
  return larger + std::log2(1 + std::exp2(std::min(a, b) - larger));
}

}  // namespace

void CostPolicy::tell(double uses) noexcept {
  age_ += uses / (half_life_uses * static_cast<double>(std::max<std::size_t>(order_.size(), 1)));
}

double CostPolicy::log_worth(const Entry& entry) const noexcept {
  const double weight = static_cast<double>(std::max({entry.facts.charge, least_weight_, std::uint64_t{1}}));
  return entry.log_uses + std::log2(static_cast<double>(std::max<std::uint64_t>(entry.facts.saved_ns, 1)) / weight);
}

double CostPolicy::saves(const Entry& entry) const noexcept {
  return std::exp2(entry.log_uses - age_) * static_cast<double>(std::max<std::uint64_t>(entry.facts.saved_ns, 1));
}

void CostPolicy::inserted(EntryId id, const EntryFacts& facts) {
  if (id >= entries_.size()) entries_.resize(std::size_t{id} + 1);
  ghosts_.reserve(std::max(least_ghosts, ghosts_an_entry * (order_.size() + 1)));
  Entry entry{facts, age_, {}};
  const auto place = order_.insert({0, id}).first;  // the last that may throw
  tell(1);
  const std::optional<double> before = ghosts_.take(facts.key_hash);
  entry.log_uses = before ? sum_of_logs(*before, age_) : age_;
  entry.place = place;
  entries_[id] = entry;
  rank_again(id);
}

void CostPolicy::used(EntryId id, std::uint32_t times) noexcept {
  if (times == 0) return;
  tell(times);
  entries_[id].log_uses = sum_of_logs(entries_[id].log_uses, age_ + std::log2(static_cast<double>(times)));
  rank_again(id);
}

void CostPolicy::updated(EntryId id, const EntryFacts& facts) noexcept {
  entries_[id].facts = facts;
  rank_again(id);
}

void CostPolicy::erased(EntryId id) noexcept {
  order_.erase(entries_[id].place);
  ghosts_.note(entries_[id].facts.key_hash, entries_[id].log_uses);
}

void CostPolicy::rank_again(EntryId id) noexcept {
  auto node = order_.extract(entries_[id].place);  // the node is used again: nothing is allocated
  node.value() = {log_worth(entries_[id]), id};
  entries_[id].place = order_.insert(std::move(node)).position;
}

bool CostPolicy::choose(const RoomNeeded& needed, const Evictable& evictable, std::vector<EntryId>& victims) {
  Room room(needed, victims);
  double lost_ns = 0;
  for (const Rank& rank : order_) {
    if (room.enough()) break;
    if (rank.id == needed.newcomer || !evictable(rank.id)) continue;
    room.add(rank.id, entries_[rank.id].facts.charge);
    lost_ns += saves(entries_[rank.id]);
  }
  if (needed.newcomer != no_entry && (!room.enough() || lost_ns > saves(entries_[needed.newcomer]))) {
    room.add(needed.newcomer, entries_[needed.newcomer].facts.charge);
  }
  return room.enough();
}

}  // namespace kiln
