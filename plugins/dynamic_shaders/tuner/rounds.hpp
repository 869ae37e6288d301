// Rounds: how those that may be the best are told apart on a machine whose speed comes and goes.
//
// Each round runs all that still meet, one after another; what disturbs a round disturbs all of them, so a time says
// something only beside the others' of the same round. Thread-safety: pure functions. Ownership: values.
#pragma once

#include <kiln/tuning.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "dynamic_shaders/tuner/tuning_database.hpp"

namespace kiln::dynamic_shaders {

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

}  // namespace kiln::dynamic_shaders
