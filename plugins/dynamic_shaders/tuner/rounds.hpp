// Rounds: how those that may be the best are told apart on a machine whose speed comes and goes.
//
// Each round runs all that still meet, one after another; what disturbs a round disturbs all of them, so a time says
// something only beside the others' of the same round. Thread-safety: pure functions. Ownership: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dynamic_shaders/tuner/tuning_database.hpp"

namespace kiln::dynamic_shaders {

struct Entrant {
  TuningRecord record;
  std::vector<std::uint64_t> rounds_ns;  // median wall time of its runs in each round, the first round first; none is 0
  bool runs = true;                      // false: it failed in a round
};

// The fastest first: by the median over the rounds of its time as a share of what the round took of those that are
// ranked; who left before has no say in that. Those that failed, or met in no round, are left out. Of unlike numbers of
// rounds (a round was broken off) only what all have counts.
void rank(std::vector<Entrant*>& meeting);

// Leaves the first `places` of those that are ranked, and the incumbent. REQUIRES: ranked.
void leave(std::vector<Entrant*>& meeting, std::size_t places, const std::string& incumbent);

}  // namespace kiln::dynamic_shaders
