#include "cache_policies/references.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

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

}  // namespace kiln::bench
