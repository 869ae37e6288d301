#include "cache/cost_policy.hpp"

#include <cmath>
#include <functional>
#include <limits>

namespace kiln {
namespace {

// How many intervals the program's mean rate stands for beside those that were seen.
constexpr double assumed_intervals = 4;
constexpr std::uint32_t most_times = 64;  // more at once say no more about the next

constexpr std::size_t least_ghosts = 256;
constexpr std::size_t ghosts_an_entry = 8;
constexpr std::size_t most_ranked = 1024;
constexpr double half_life_uses = 32;  // for each entry held

}  // namespace

void UseHistory::used(std::uint64_t now, std::uint32_t times, double half_life) noexcept {
  times = std::min(times, most_times);
  if (uses_ != 0) {
    const double gap = static_cast<double>(now - latest_);
    recent_uses_ *= static_cast<float>(std::exp2(-gap / half_life));
    const std::uint64_t each = std::max<std::uint64_t>(1, (now - latest_) / times);
    const std::size_t size = std::min<std::size_t>(std::bit_width(each) - 1, sizes - 1);
    if (uses_ + times > std::numeric_limits<std::uint8_t>::max()) halve();
    intervals_[size] = static_cast<std::uint8_t>(intervals_[size] + times);
  }
  uses_ = static_cast<std::uint8_t>(uses_ + times);
  recent_uses_ += static_cast<float>(times);
  latest_ = now;
}

void UseHistory::halve() noexcept {
  for (std::uint8_t& count : intervals_) count = static_cast<std::uint8_t>(count / 2);
  uses_ = static_cast<std::uint8_t>(uses_ / 2);
}

std::uint32_t UseHistory::age_class(std::uint64_t now) const noexcept {
  return std::min<std::uint32_t>(static_cast<std::uint32_t>(std::bit_width(now - latest_ + 1)) - 1, sizes - 1);
}

double UseHistory::prospect(std::uint32_t age_class, double half_life) const noexcept {
  // Two crowds have come to this age without a use: of the intervals seen those that lasted longer, and a few assumed
  // ones of a program without memory, at the mean rate that is left at this age. Keeping them through one more power of
  // two costs its length for each that is not used in it and half of it for each that is; the best ratio of uses to
  // time, over all lengths of keeping, is the answer.
  double length = std::ldexp(1.0, static_cast<int>(age_class));
  const double rate = static_cast<double>(recent_uses_) * std::log(2.0) / half_life * std::exp2(-length / half_life);
  double seen = uses_;
  for (std::uint32_t i = 0; i < age_class; ++i) seen -= intervals_[i];
  double assumed = assumed_intervals;
  double uses = 0;
  double time = 0;
  double best = 0;
  for (std::size_t i = age_class; i < sizes; ++i, length *= 2) {
    const double used_assumed = assumed * (rate * length) / (1 + rate * length);
    const double used = intervals_[i] + used_assumed;
    uses += used;
    time += length * (seen + assumed - used / 2);
    best = std::max(best, uses / time);
    seen -= intervals_[i];
    assumed -= used_assumed;
  }
  return best;
}

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

bool CostPolicy::take_least(const RoomNeeded& needed, ChosenVictims& chosen) {
  bool admitted = true;
  std::make_heap(ranked_.begin(), ranked_.end(), std::greater<>());
  while (!chosen.enough() && !ranked_.empty()) {
    const auto [least, id] = ranked_.front();
    if (admitted && needed.newcomer != no_entry && least > worth(needed.newcomer)) {
      admitted = false;
      chosen.add(needed.newcomer, entries_[needed.newcomer].facts.charge);
      continue;
    }
    chosen.add(id, entries_[id].facts.charge);
    std::pop_heap(ranked_.begin(), ranked_.end(), std::greater<>());
    ranked_.pop_back();
  }
  return admitted;
}

bool CostPolicy::choose(const RoomNeeded& needed, const Evictable& evictable, std::vector<EntryId>& victims) {
  if (held_.size() > most_ranked) {
    ChosenVictims chosen(needed, victims);
    rank_some(needed, evictable);
    take_least(needed, chosen);
    if (chosen.enough()) return true;
  }
  ChosenVictims chosen(needed, victims);
  rank_all(needed, evictable);
  const bool admitted = take_least(needed, chosen);
  if (admitted && !chosen.enough() && needed.newcomer != no_entry) {
    chosen.add(needed.newcomer, entries_[needed.newcomer].facts.charge);
  }
  return chosen.enough();
}

}  // namespace kiln
