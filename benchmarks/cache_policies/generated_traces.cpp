#include "cache_policies/generated_traces.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace kiln::bench {
namespace {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : twister_(seed) {}
  double uniform() { return static_cast<double>(twister_() >> 11) * 0x1p-53; }  // [0, 1)
  double log_uniform(double least, double most) { return least * std::pow(most / least, uniform()); }
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(uniform() * static_cast<double>(count)); }

 private:
  std::mt19937_64 twister_;
};

TracedProgram random_program(Dice& dice, std::string name) {
  return {std::move(name), static_cast<std::uint64_t>(dice.log_uniform(12e3, 160e3)),
          static_cast<std::uint64_t>(dice.log_uniform(20e6, 1000e6))};
}

}  // namespace

Trace generate(const ZipfMix& mix) {
  Dice dice(mix.seed);
  Trace trace;
  trace.name = mix.name;
  std::vector<std::uint32_t> by_rank;
  std::vector<double> below_rank;  // running sums of the weights
  double sum = 0;
  for (std::uint32_t rank = 0; rank < mix.programs; ++rank) {
    by_rank.push_back(rank);
    below_rank.push_back(sum += std::pow(rank + 1.0, -mix.skew));
    trace.programs.push_back(random_program(dice, "zipf" + std::to_string(rank)));
  }
  for (std::uint32_t request = 1; request <= mix.requests; ++request) {
    const auto rank = std::upper_bound(below_rank.begin(), below_rank.end() - 1, dice.uniform() * sum);
    trace.requests.push_back(by_rank[static_cast<std::size_t>(rank - below_rank.begin())]);
    if (mix.scan_every != 0 && request % mix.scan_every == 0) {
      for (std::uint32_t i = 0; i < mix.scan_length; ++i) {
        trace.requests.push_back(static_cast<std::uint32_t>(trace.programs.size()));
        trace.programs.push_back(random_program(dice, "scan" + std::to_string(trace.programs.size())));
      }
    }
    if (mix.shuffle_every != 0 && request % mix.shuffle_every == 0) {
      for (std::size_t i = by_rank.size(); i > 1; --i) std::swap(by_rank[i - 1], by_rank[dice.below(i)]);
    }
  }
  return trace;
}

std::vector<ZipfMix> standard_mixes(std::uint64_t seed) {
  std::vector<ZipfMix> mixes(5);
  mixes[0] = {"zipf_0.8", 1000, 0.8, 60'000, 0, 0, 0, seed};
  mixes[1] = {"zipf_1.0", 1000, 1.0, 60'000, 0, 0, 0, seed};
  mixes[2] = {"zipf_0.8_scans", 1000, 0.8, 60'000, 1000, 200, 0, seed};
  mixes[3] = {"zipf_1.0_scans", 1000, 1.0, 60'000, 1000, 200, 0, seed};
  mixes[4] = {"zipf_1.0_moving", 1000, 1.0, 60'000, 0, 0, 15'000, seed};
  return mixes;
}

}  // namespace kiln::bench
