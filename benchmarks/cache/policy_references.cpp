#include "cache/cost_policy.hpp"
#include "cache/policy_comparison.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

namespace kiln::bench {
namespace {

constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

// For each request, when its program is requested next.
std::vector<std::uint64_t> next_requests(const Trace& trace) {
  std::vector<std::uint64_t> next(trace.requests.size(), never);
  std::vector<std::uint64_t> seen(trace.programs.size(), never);
  for (std::size_t i = trace.requests.size(); i-- > 0;) {
    next[i] = seen[trace.requests[i]];
    seen[trace.requests[i]] = i;
  }
  return next;
}

// A cache whose entries are ranked by a number that changes only when they are requested; the lowest leaves.
template <class RankOf>
Outcome ranked(const Trace& trace, std::uint64_t capacity, RankOf&& rank_of) {
  using Rank = std::tuple<double, std::uint64_t, std::uint32_t>;  // rank, last request, program
  std::set<Rank> order;
  std::vector<Rank> held(trace.programs.size());
  std::vector<char> is_held(trace.programs.size());
  std::uint64_t bytes = 0;
  Outcome outcome;
  for (std::size_t now = 0; now < trace.requests.size(); ++now) {
    const std::uint32_t program = trace.requests[now];
    const TracedProgram& traced = trace.programs[program];
    const Rank rank{rank_of(now, program), now, program};
    if (is_held[program] != 0) {
      ++outcome.hits;
      outcome.saved_ns += traced.build_ns;
      order.erase(held[program]);
      held[program] = rank;
      order.insert(rank);
      continue;
    }
    if (traced.bytes > capacity) continue;
    std::vector<Rank> victims;
    std::uint64_t left = bytes;
    auto lowest = order.begin();
    for (; left + traced.bytes > capacity && *lowest < rank; ++lowest) {
      victims.push_back(*lowest);
      left -= trace.programs[std::get<2>(*lowest)].bytes;
      if (std::next(lowest) == order.end()) {
        ++lowest;
        break;
      }
    }
    if (left + traced.bytes > capacity) {
      ++outcome.refused;
      continue;
    }
    for (const Rank& victim : victims) {
      order.erase(victim);
      is_held[std::get<2>(victim)] = 0;
      ++outcome.evictions;
    }
    bytes = left + traced.bytes;
    is_held[program] = 1;
    held[program] = rank;
    order.insert(rank);
  }
  return outcome;
}

}  // namespace

Outcome perfect_lfu(const Trace& trace, std::uint64_t capacity_bytes) {
  std::vector<double> counts(trace.programs.size());
  return ranked(trace, capacity_bytes, [&](std::size_t, std::uint32_t program) { return ++counts[program]; });
}

Outcome perfect_cost(const Trace& trace, std::uint64_t capacity_bytes) {
  std::vector<double> counts(trace.programs.size());
  return ranked(trace, capacity_bytes, [&](std::size_t, std::uint32_t program) {
    const TracedProgram& traced = trace.programs[program];
    return ++counts[program] * static_cast<double>(traced.build_ns) / static_cast<double>(traced.bytes);
  });
}

Outcome belady(const Trace& trace, std::uint64_t capacity_bytes) {
  const auto next = next_requests(trace);
  return ranked(trace, capacity_bytes, [&](std::size_t now, std::uint32_t) { return -static_cast<double>(next[now]); });
}

Outcome belady_cost(const Trace& trace, std::uint64_t capacity_bytes) {
  const auto next = next_requests(trace);
  struct Held {
    std::uint32_t program;
    std::uint64_t next;
  };
  std::vector<Held> held;
  std::vector<std::size_t> place(trace.programs.size(), never);
  std::uint64_t bytes = 0;
  Outcome outcome;
  for (std::size_t now = 0; now < trace.requests.size(); ++now) {
    const std::uint32_t program = trace.requests[now];
    const TracedProgram& traced = trace.programs[program];
    if (place[program] != never) {
      ++outcome.hits;
      outcome.saved_ns += traced.build_ns;
      held[place[program]].next = next[now];
      continue;
    }
    if (traced.bytes > capacity_bytes) continue;
    const auto worth = [&](const Held& entry) {
      if (entry.next == never) return 0.0;
      const TracedProgram& one = trace.programs[entry.program];
      return static_cast<double>(one.build_ns) /
             (static_cast<double>(one.bytes) * static_cast<double>(entry.next - now));
    };
    std::vector<std::pair<double, std::uint32_t>> order;
    if (bytes + traced.bytes > capacity_bytes) {
      for (const Held& entry : held) order.emplace_back(worth(entry), entry.program);
      std::sort(order.begin(), order.end());
    }
    const double own = worth({program, next[now]});
    std::uint64_t left = bytes;
    std::size_t count = 0;
    while (left + traced.bytes > capacity_bytes && order[count].first < own) {
      left -= trace.programs[order[count++].second].bytes;
      if (count == order.size()) break;
    }
    if (left + traced.bytes > capacity_bytes || next[now] == never) {
      ++outcome.refused;
      continue;
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = place[order[i].second];
      place[held.back().program] = at;
      place[order[i].second] = never;
      held[at] = held.back();
      held.pop_back();
      ++outcome.evictions;
    }
    bytes = left + traced.bytes;
    place[program] = held.size();
    held.push_back({program, next[now]});
  }
  return outcome;
}

Outcome upper_bound(const Trace& trace, std::uint64_t capacity_bytes) {
  const auto next = next_requests(trace);
  struct Interval {
    double space;  // bytes x requests
    double value;
  };
  const auto best = [&](auto&& value_of) {
    std::vector<Interval> intervals;
    for (std::size_t i = 0; i < next.size(); ++i) {
      const TracedProgram& traced = trace.programs[trace.requests[i]];
      if (next[i] == never || traced.bytes > capacity_bytes) continue;
      intervals.push_back({static_cast<double>(traced.bytes) * static_cast<double>(next[i] - i), value_of(traced)});
    }
    std::sort(intervals.begin(), intervals.end(),
              [](const Interval& a, const Interval& b) { return a.value * b.space > b.value * a.space; });
    double space = static_cast<double>(capacity_bytes) * static_cast<double>(next.size());
    double value = 0;
    for (const Interval& interval : intervals) {
      const double part = std::min(1.0, space / interval.space);
      value += interval.value * part;
      space -= interval.space * part;
      if (space <= 0) break;
    }
    return static_cast<std::uint64_t>(value);
  };
  Outcome outcome;
  outcome.hits = best([](const TracedProgram&) { return 1.0; });
  outcome.saved_ns = best([](const TracedProgram& traced) { return static_cast<double>(traced.build_ns); });
  return outcome;
}

namespace {

class Tier {
 public:
  Tier(const Trace& trace, std::uint64_t capacity, EvictionPolicy& policy, Uses uses)
      : trace_(trace), capacity_(capacity), policy_(policy), uses_(uses), slot_of_(trace.programs.size(), no_entry) {}

  void request(std::uint32_t program) {
    if (const EntryId id = slot_of_[program]; id != no_entry) {
      ++outcome_.hits;
      outcome_.saved_ns += trace_.programs[program].build_ns;
      hit(id);
    } else {
      ++misses_;
      miss(program);
    }
  }

  Outcome outcome() const {
    Outcome outcome = outcome_;
    outcome.policy_ns_per_miss =
        static_cast<double>(policy_ns_) / static_cast<double>(std::max<std::uint64_t>(misses_, 1));
    return outcome;
  }

 private:
  struct Slot {
    std::uint32_t program = 0;
    std::uint64_t stamp = 0;
    std::uint32_t epochs = 0;  // in which it was used, and not told yet
  };

  void hit(EntryId id) {
    if (uses_ == Uses::exact) return policy_.used(id, 1);
    Slot& slot = slots_[id];
    if (slot.stamp == epoch_) return;
    slot.stamp = epoch_;
    ++slot.epochs;
  }

  void miss(std::uint32_t program) {
    const TracedProgram& built = trace_.programs[program];
    const auto start = std::chrono::steady_clock::now();
    ++epoch_;
    if (built.bytes <= capacity_) take_in(program, built);
    policy_ns_ += static_cast<std::uint64_t>((std::chrono::steady_clock::now() - start).count());
  }

  void take_in(std::uint32_t program, const TracedProgram& built) {
    const bool full = bytes_ + built.bytes > capacity_;
    if (full && uses_ == Uses::stamped) tell_stamped();
    const EntryId id = free_.empty() ? static_cast<EntryId>(slots_.size()) : free_.back();
    if (free_.empty()) {
      slots_.emplace_back();
    } else {
      free_.pop_back();
    }
    slots_[id] = {program, epoch_, 0};
    slot_of_[program] = id;
    bytes_ += built.bytes;
    policy_.inserted(id, {mix(program + 1), built.bytes, built.build_ns});
    if (!full) return;
    policy_.choose(
        {0, bytes_ - capacity_, id}, [](EntryId) { return true; }, victims_);
    for (const EntryId victim : victims_) {
      ++(victim == id ? outcome_.refused : outcome_.evictions);
      policy_.erased(victim);
      bytes_ -= trace_.programs[slots_[victim].program].bytes;
      slot_of_[slots_[victim].program] = no_entry;
      free_.push_back(victim);
    }
  }

  void tell_stamped() {
    stamped_.clear();
    for (EntryId id = 0; id < slots_.size(); ++id) {
      if (slots_[id].epochs != 0 && slot_of_[slots_[id].program] == id) stamped_.emplace_back(slots_[id].stamp, id);
    }
    std::sort(stamped_.begin(), stamped_.end());
    for (const auto& [stamp, id] : stamped_) policy_.used(id, std::exchange(slots_[id].epochs, 0));
  }

  const Trace& trace_;
  const std::uint64_t capacity_;
  EvictionPolicy& policy_;
  const Uses uses_;
  std::vector<EntryId> slot_of_;  // by program
  std::vector<Slot> slots_;
  std::vector<EntryId> free_, victims_;
  std::vector<std::pair<std::uint64_t, EntryId>> stamped_;
  std::uint64_t bytes_ = 0;
  std::uint64_t epoch_ = 0;
  std::uint64_t misses_ = 0;
  std::uint64_t policy_ns_ = 0;
  Outcome outcome_;
};

}  // namespace

Outcome simulate(const Trace& trace, std::uint64_t capacity_bytes, EvictionPolicy& policy, Uses uses) {
  Tier tier(trace, capacity_bytes, policy, uses);
  for (const std::uint32_t program : trace.requests) tier.request(program);
  return tier.outcome();
}

}  // namespace kiln::bench
