#include "selector/chooser.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <memory>
#include <span>
#include <string>
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
  for (int i = 0; i < rounds; ++i) {
    const std::size_t chosen = policy.choose(options, random);
    if (chosen >= counts.size()) FAIL("option " << chosen << " of " << counts.size());
    ++counts[chosen];
  }
  return counts;
}

// Measured, and a run takes so long.
Prospect measured(double run_ms, bool drifted) {
  Prospect prospect;
  prospect.run.evidence = Evidence::own;
  prospect.run.log_ns = std::log(run_ms * 1e6);
  prospect.run.drifted = drifted;
  return prospect;
}

}  // namespace

TEST_CASE("selector policies: ema takes the least cost, fixed part included", "[selector]") {
  const auto policy = make_ema();
  CHECK(tally(*policy, {option(0, 3, 0.5), option(0, 2, 0.5)}) == std::vector<int>{0, 2000});
  CHECK(tally(*policy, {option(0, 3, 0.5), option(5, 2, 0.5)}) == std::vector<int>{2000, 0});
}

TEST_CASE("selector policies: of options that are alike ema and ucb take the first", "[selector]") {
  const std::vector<Option> alike{option(0, 3, 0.1), option(0, 2, 0.1), option(0, 2, 0.1)};
  CHECK(cheapest(alike) == 1);
  CHECK(tally(*make_ema(), alike, 10) == std::vector<int>{0, 10, 0});
  CHECK(tally(*make_ucb(), alike, 10) == std::vector<int>{0, 10, 0});
}

TEST_CASE("selector policies: epsilon strays for its share, never to the hopeless", "[selector]") {
  const auto policy = make_epsilon(0.2);
  const auto counts = tally(*policy, {option(0, 2, 0.1), option(0, 6, 0.1), option(0, 60, 0.1)});
  CHECK(counts[1] > 100);  // a tenth of 2,000 is expected
  CHECK(counts[1] < 300);
  CHECK(counts[2] == 0);
  CHECK(tally(*make_epsilon(0), {option(0, 2, 0.1), option(0, 2.1, 0.1)}) == std::vector<int>{2000, 0});
}

TEST_CASE("selector policies: epsilon skips devices above ten times the lowest cost", "[selector]") {
  const auto counts = tally(*make_epsilon(1), {option(0, 2, 0.1), option(0, 19.8, 0.1), option(0, 20.2, 0.1)});
  CHECK(counts[0] > 850);  // a half of 2,000 is expected
  CHECK(counts[1] > 850);
  CHECK(counts[2] == 0);
}

TEST_CASE("selector policies: read only the given options", "[selector]") {
  // The third costs the least of all.
  const std::vector<Option> all{option(0, 3, 0.01), option(0, 2, 0.01), option(0, 0.001, 0.01)};
  const std::span<const Option> two = std::span<const Option>(all).first(2);
  CHECK(cheapest(two) == 1);
  CHECK(cheapest(two.first(1)) == 0);
  CHECK(cheapest(all) == 2);
  std::vector<std::unique_ptr<Policy>> policies;
  policies.push_back(make_ema());
  policies.push_back(make_epsilon(0.5));
  policies.push_back(make_ucb());
  policies.push_back(make_thompson());
  std::mt19937_64 random;
  for (std::size_t i = 0; i < policies.size(); ++i) {
    CAPTURE(i);
    for (int round = 0; round < 100; ++round) REQUIRE(policies[i]->choose(two, random) < 2);
  }
}

TEST_CASE("selector policies: a changed device is explored again after fifty runs on other devices", "[selector]") {
  Exploration exploration(0.02);
  const std::vector<Prospect> prospects{measured(1, false), measured(3, true)};
  const std::vector<std::uint64_t> long_ago{0, 50}, lately{0, 49};
  CHECK_FALSE(exploration.again(prospects, long_ago));  // nothing was earned yet
  exploration.spend(149e6);                             // 2 % of it is less than 3 ms
  CHECK_FALSE(exploration.again(prospects, long_ago));
  exploration.spend(2e6);
  const auto look = exploration.again(prospects, long_ago);
  REQUIRE(look);
  CHECK(look->candidate == 1);
  CHECK(look->charged_ns == Approx(3e6));
  CHECK_FALSE(exploration.again(prospects, lately));
  CHECK_FALSE(exploration.again(std::vector<Prospect>{measured(1, false), measured(3, false)}, long_ago));
  // The best one is chosen anyway.
  CHECK_FALSE(exploration.again(std::vector<Prospect>{measured(1, false), measured(1, true)}, long_ago));
}

TEST_CASE("selector policies: ucb gives the uncertain the benefit of doubt", "[selector]") {
  const auto policy = make_ucb();
  CHECK(tally(*policy, {option(0, 2, 0.01, 100), option(0, 3, 0.4, 1)}) == std::vector<int>{0, 2000});
  CHECK(tally(*policy, {option(0, 2, 0.01, 100), option(0, 3, 0.01, 100)}) == std::vector<int>{2000, 0});
  // The interval has no width before the first run: sqrt(2 ln 1). With one it is 1.18 deviations: 3 ms less a third.
  CHECK(tally(*policy, {option(0, 2.2, 0.01, 0), option(0, 3, 0.4, 0)}, 10) == std::vector<int>{10, 0});
  CHECK(tally(*policy, {option(0, 2.2, 0.01, 0), option(0, 3, 0.4, 1)}, 10) == std::vector<int>{0, 10});
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
