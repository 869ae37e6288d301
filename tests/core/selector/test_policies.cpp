#include "selector/chooser.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

using namespace kiln;
using namespace kiln::selector;

namespace {

Option option(double fixed_ms, double run_ms, double deviation, std::uint64_t runs = 10) {
  return {fixed_ms * 1e6, std::log(run_ms * 1e6), deviation, runs};
}

std::vector<int> tally(Policy& policy, const std::vector<Option>& options, int rounds = 2000) {
  std::mt19937_64 random;
  std::vector<int> counts(options.size());
  for (int i = 0; i < rounds; ++i) ++counts[policy.choose(options, random)];
  return counts;
}

}  // namespace

TEST_CASE("selector policies: ema takes the least cost, fixed part included", "[selector]") {
  const auto policy = make_ema();
  CHECK(tally(*policy, {option(0, 3, 0.5), option(0, 2, 0.5)}) == std::vector<int>{0, 2000});
  CHECK(tally(*policy, {option(0, 3, 0.5), option(5, 2, 0.5)}) == std::vector<int>{2000, 0});
}

TEST_CASE("selector policies: epsilon strays for its share, never to the hopeless", "[selector]") {
  const auto policy = make_epsilon(0.2);
  const auto counts = tally(*policy, {option(0, 2, 0.1), option(0, 6, 0.1), option(0, 60, 0.1)});
  CHECK(counts[1] > 100);  // a tenth of 2,000 is expected
  CHECK(counts[1] < 300);
  CHECK(counts[2] == 0);
  CHECK(tally(*make_epsilon(0), {option(0, 2, 0.1), option(0, 2.1, 0.1)}) == std::vector<int>{2000, 0});
}

TEST_CASE("selector policies: ucb gives the uncertain the benefit of doubt", "[selector]") {
  const auto policy = make_ucb();
  CHECK(tally(*policy, {option(0, 2, 0.01, 100), option(0, 3, 0.4, 1)}) == std::vector<int>{0, 2000});
  CHECK(tally(*policy, {option(0, 2, 0.01, 100), option(0, 3, 0.01, 100)}) == std::vector<int>{2000, 0});
}

TEST_CASE("selector policies: thompson chooses as often as one is likely to be best", "[selector]") {
  const auto policy = make_thompson();
  const auto alike = tally(*policy, {option(0, 2, 0.1), option(0, 2, 0.1)});
  CHECK(alike[0] > 850);
  CHECK(alike[1] > 850);
  CHECK(tally(*policy, {option(0, 2, 0.05), option(0, 20, 0.05)}) == std::vector<int>{2000, 0});
  const auto doubtful = tally(*policy, {option(0, 2, 0.05), option(0, 3, 0.4)});
  CHECK(doubtful[1] > 100);  // one deviation behind: about 15 in 100
  CHECK(doubtful[1] < 700);
}
