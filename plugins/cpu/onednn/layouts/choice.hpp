// Choosing among pipelines by timing them on the tensors at hand.
//
// Thread-safety: any thread; the caller keeps others off the pipelines.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace kiln::cpu {

struct Choice {
  static constexpr std::uint64_t not_timed = std::numeric_limits<std::uint64_t>::max();
  std::size_t fastest = 0;
  std::vector<std::uint64_t> typical_ns;  // by candidate: the lower median of its times
};

// run(i) runs candidate i once and answers how many nanoseconds that took. Candidates are timed in turns, so that a
// disturbance meets all of them; one that falls clearly behind leaves. Whoever is done quickly runs twice in a turn,
// and the second counts. No turn starts once the runs have taken `budget`, except that the first turn, in which
// everybody runs, may take twice that. At least the first candidate is run. REQUIRES: candidates is positive.
Choice choose_fastest(std::size_t candidates, std::chrono::nanoseconds budget,
                      const std::function<std::uint64_t(std::size_t)>& run);

}  // namespace kiln::cpu
