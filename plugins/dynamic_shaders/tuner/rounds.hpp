// Comparison rounds of the tuner: interleaved measurements, filtered samples, and agreement of results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <kiln/status.hpp>
#include <kiln/tuning.hpp>

#include "dynamic_shaders/tuner/tuning_database.hpp"

namespace kiln::dynamic_shaders {

// Rounds: how those that may be the best are told apart on a machine whose speed comes and goes.
//
// Each round runs all that still meet, one after another; what disturbs a round disturbs all of them, so a time says
// something only beside the others' of the same round. Thread-safety: pure functions. Ownership: values.

struct Entrant {
  TuningRecord record;
  std::vector<std::uint64_t> rounds_ns;  // median wall time of its runs in each round, the first round first; none is 0
  std::vector<double> contention;        // VariantSamples::contention of each round
  bool runs = true;                      // false: it failed in a round
};

// The fastest first: by the median over the rounds of its time as a share of what the round took of those that are
// ranked; who left before has no say in that. Those that failed, or met in no round, are left out. Of unlike numbers of
// rounds (a round was broken off) only what all have counts.
void rank(std::vector<Entrant*>& meeting);

// Leaves the first `places` of those that are ranked, and the incumbent. REQUIRES: ranked.
void leave(std::vector<Entrant*>& meeting, std::size_t places, const std::string& incumbent);

// A machine on which threads wait so long for a processor, or on which the times of two variants in the same round
// differ from round to round so much, is too busy to compare them.
inline constexpr double most_contention = 0.2;
inline constexpr double most_spread = 0.25;

struct RoundsChoice {
  const Entrant* best = nullptr;
  TuneDecision decision = TuneDecision::invalid;
  bool busy = false;
  double contention = 0;  // the median over all rounds of all
  double spread = 0;      // spread_of() the ratios of the incumbent and the fastest other
};

// The incumbent, unless the fastest other is faster beyond the noise of both: in the interval of the ratios' median, by
// 2 % at the median, and in the best run of each. On a busy machine a stored winner (`won`) stays, and another
// incumbent goes only if the whole interval of the ratios lies above 1.5. Without an incumbent that ran, the fastest.
// REQUIRES: ranked; not empty.
RoundsChoice choice_of_rounds(const std::vector<Entrant*>& ranked, const std::string& incumbent, bool won);

// What a handful of times says: the median, an interval that holds the true median, and which of two is slower.
//
// Thread-safety: pure functions. Ownership: values.

struct Interval {
  std::uint64_t lower = 0, median = 0, upper = 0;
  bool overlaps(const Interval& other) const noexcept { return lower <= other.upper && other.lower <= upper; }
};

// The interval between order statistics that holds the median with at least 95 % confidence, whatever the times'
// distribution (the count of samples below the median is binomial with p = 1/2); with fewer than six samples, which
// cannot give that, from the least to the greatest. REQUIRES: not empty.
Interval interval_of(std::span<const std::uint64_t> samples);

// a ÷ b, round by round, in millionths. REQUIRES: as many rounds of a as of b, at least one, none of b zero.
std::vector<std::uint64_t> ratios_of(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b);
inline constexpr double one_in_millionths = 1e6;

// The middle half of the samples, its width as a share of the median: 0 of less than four. REQUIRES: not empty.
double spread_of(std::span<const std::uint64_t> samples);

// Of two that met in the same rounds: whether a's median ratio to b is above 1 with that confidence. What disturbs a
// round disturbs both, so ratios of rounds tell apart what the intervals of their times do not. With fewer than six
// rounds: whether a was slower in each. REQUIRES: as many rounds of a as of b, at least one, none of b zero.
bool slower(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b);

// Which variants of a kernel are right where there is no reference: those of the largest group that computes the same.
//
// Thread-safety: pure functions. Ownership: values.

struct Vote {
  std::string variant;
  std::uint32_t group = 0;  // VariantSamples::agreement
};

struct Outvoted {
  std::string variant;
  std::string why;
};

struct Agreement {
  std::uint32_t group = 0;         // taken as right
  std::vector<Outvoted> outvoted;  // the variants of all other groups, in the order of the votes
};

// unavailable: no group is larger than every other, with the variants of the largest ones. Variants of the group
// agrees_with_none count as one group, which is never taken as right. REQUIRES: not empty.
Result<Agreement> agreement_of(std::span<const Vote> votes);

}  // namespace kiln::dynamic_shaders
