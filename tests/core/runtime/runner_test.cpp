#include "runtime/runner.hpp"

#include <catch2/catch.hpp>

using namespace kiln;

namespace {

Measurement with_wall(std::uint64_t wall_ns, std::uint64_t device_ns) {
  Measurement measurement;
  measurement.wall_ns = wall_ns;
  measurement.device_ns = device_ns;
  return measurement;
}

}  // namespace

TEST_CASE("the median is taken field by field and is a time that was measured") {
  RunStatistics statistics;
  statistics.add(with_wall(30, 1));
  statistics.add(with_wall(10, 3));
  statistics.add(with_wall(20, 2));
  CHECK(statistics.median().wall_ns == 20);
  CHECK(statistics.median().device_ns == 2);
  CHECK(statistics.wall_min_ns() == 10);
  CHECK(statistics.wall_max_ns() == 30);
  statistics.add(with_wall(100, 100));
  CHECK(statistics.median().wall_ns == 20);  // the lower of the two in the middle
}

TEST_CASE("one run is its own median") {
  RunStatistics statistics;
  statistics.add(with_wall(7, 5));
  CHECK(statistics.median().wall_ns == 7);
  CHECK(statistics.wall_min_ns() == 7);
  CHECK(statistics.wall_max_ns() == 7);
}

TEST_CASE("the first run of a program in its process stands apart from the steady ones") {
  RunStatistics statistics;
  Measurement cold = with_wall(1000, 900);
  cold.first_run = true;
  statistics.add(cold);
  REQUIRE(statistics.first());
  CHECK(statistics.first()->wall_ns == 1000);
  CHECK_FALSE(statistics.steady_median());
  for (const std::uint64_t wall_ns : {30, 10, 20}) statistics.add(with_wall(wall_ns, wall_ns));
  REQUIRE(statistics.steady_median());
  CHECK(statistics.steady_median()->wall_ns == 20);
  CHECK_FALSE(statistics.steady_median()->first_run);
  CHECK(statistics.first()->wall_ns == 1000);

  RunStatistics later;  // another job of the same program
  later.add(with_wall(7, 5));
  CHECK_FALSE(later.first());
  CHECK(later.steady_median()->wall_ns == 7);
}
