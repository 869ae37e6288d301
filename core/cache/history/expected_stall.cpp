#include "cache/history/expected_stall.hpp"

#include <algorithm>

namespace kiln {
namespace {

constexpr double half_at_ms = 2000;  // into a run: what is needed then counts half of what is needed at once

double made_ms(const EntryMeta& meta) { return meta.build_ms + meta.first_dispatch_ms; }

double taken_in_ms(const EntryMeta& meta) { return meta.load_ms + meta.warm_dispatch_ms; }

// What taking a program in costs of what making it cost, over those of which both are known.
double share_of_making(std::span<const EntryMeta> programs) {
  double taken_in = 0, made = 0;
  for (const EntryMeta& meta : programs) {
    if (meta.load_ms <= 0) continue;
    taken_in += taken_in_ms(meta);
    made += made_ms(meta);
  }
  return made > 0 ? taken_in / made : 1;
}

}  // namespace

std::vector<double> expected_stalls(std::span<const EntryMeta> programs) {
  const double share = share_of_making(programs);
  std::uint64_t most_runs = 1;
  for (const EntryMeta& meta : programs) most_runs = std::max(most_runs, meta.runs);
  std::vector<double> stalls;
  stalls.reserve(programs.size());
  for (const EntryMeta& meta : programs) {
    const double stall_ms = meta.load_ms > 0 ? taken_in_ms(meta) : share * made_ms(meta);
    const double used = static_cast<double>(std::max<std::uint64_t>(meta.runs, 1)) / static_cast<double>(most_runs);
    stalls.push_back(stall_ms * used * half_at_ms / (half_at_ms + meta.first_use_ms));
  }
  return stalls;
}

}  // namespace kiln
