#include "runtime/job/run_statistics.hpp"

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
