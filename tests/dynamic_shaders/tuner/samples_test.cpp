#include "dynamic_shaders/tuner/rounds.hpp"

#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

namespace kiln::dynamic_shaders {
namespace {

// 1, 2, … count, so that an order statistic is its own number.
Interval of_count(std::uint64_t count) {
  std::vector<std::uint64_t> samples(count);
  std::iota(samples.rbegin(), samples.rend(), std::uint64_t{1});
  return interval_of(samples);
}

}  // namespace

TEST_CASE("samples: the median's interval lies between the order statistics of the tables") {
  // Of the binomial distribution with p = 1/2, tables of the sign test: the interval (l, n + 1 - l) at 95 %.
  const struct {
    std::uint64_t count, lower, upper;
  } rows[] = {{1, 1, 1},   {5, 1, 5},   {6, 1, 6},   {8, 1, 8},  {9, 2, 8},
              {12, 3, 10}, {15, 4, 12}, {20, 6, 15}, {25, 8, 18}};
  for (const auto& row : rows) {
    INFO(row.count << " samples");
    const Interval interval = of_count(row.count);
    CHECK(interval.lower == row.lower);
    CHECK(interval.upper == row.upper);
    CHECK(interval.median == (row.count + 1) / 2);
  }
}

TEST_CASE("samples: intervals overlap where they share a value") {
  const Interval a{10, 12, 14};
  CHECK(a.overlaps({14, 20, 30}));
  CHECK(a.overlaps({1, 50, 99}));
  CHECK_FALSE(a.overlaps({15, 20, 30}));
  CHECK_FALSE(Interval({15, 20, 30}).overlaps(a));
}

TEST_CASE("samples: of two in the same rounds the slower is told, whatever the rounds are like") {
  const std::vector<std::uint64_t> rounds = {100, 180, 90, 300, 120, 95, 210, 101};
  std::vector<std::uint64_t> slow = rounds;
  for (std::uint64_t& time : slow) time += time / 50;
  CHECK(interval_of(slow).overlaps(interval_of(rounds)));
  CHECK(slower(slow, rounds));
  CHECK_FALSE(slower(rounds, slow));
  CHECK_FALSE(slower(rounds, rounds));
  slow[3] = rounds[3] - 1;  // one of eight: too many for 95 %
  CHECK_FALSE(slower(slow, rounds));
  CHECK(slower(std::vector<std::uint64_t>{11, 12}, std::vector<std::uint64_t>{10, 10}));
  CHECK_FALSE(slower(std::vector<std::uint64_t>{11, 9}, std::vector<std::uint64_t>{10, 10}));
}

}  // namespace kiln::dynamic_shaders
