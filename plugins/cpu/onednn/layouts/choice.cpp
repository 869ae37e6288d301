#include "onednn/layouts/choice.hpp"

#include <kiln/clock.hpp>

#include <algorithm>

namespace kiln::cpu {
namespace {

constexpr int most_turns = 25;

// How far behind the fastest a candidate may be after so many turns. A first run also pays for cold code and page
// faults.
double tolerated(int turns) { return turns == 1 ? 3.0 : turns < 4 ? 1.3 : 1.1; }

}  // namespace

Choice choose_fastest(std::size_t candidates, std::chrono::nanoseconds budget,
                      const std::function<std::uint64_t(std::size_t)>& run) {
  Choice choice;
  choice.least_ns.assign(candidates, Choice::not_timed);
  const Deadline deadline = Deadline::after(budget);
  std::vector<std::size_t> in_race(candidates);
  for (std::size_t i = 0; i < candidates; ++i) in_race[i] = i;
  const auto fastest = [&] {
    const auto least = std::min_element(choice.least_ns.begin(), choice.least_ns.end());
    return static_cast<std::size_t>(least - choice.least_ns.begin());
  };
  for (int turn = 1; turn <= most_turns && (turn == 1 || in_race.size() > 1); ++turn) {
    for (const std::size_t candidate : in_race) {
      if (deadline.passed() && choice.least_ns[0] != Choice::not_timed) return choice;
      choice.least_ns[candidate] = std::min(choice.least_ns[candidate], run(candidate));
      choice.fastest = fastest();
    }
    const double limit = static_cast<double>(choice.least_ns[choice.fastest]) * tolerated(turn);
    std::erase_if(in_race, [&](std::size_t i) { return static_cast<double>(choice.least_ns[i]) > limit; });
  }
  return choice;
}

}  // namespace kiln::cpu
