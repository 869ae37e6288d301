#include "amdgpu_pm4/device/submission.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <random>

namespace kiln::amdgpu_pm4 {

TEST_CASE("ring space: nothing is given twice before its point is passed") {
  RingSpace ring(256);
  CHECK(ring.take(100, 64, 1) == 0);
  CHECK(ring.take(100, 64, 2) == 128);
  CHECK_FALSE(ring.take(64, 64, 3).has_value());  // 28 bytes are left, and point 1 is not passed
  ring.passed(1);
  CHECK(ring.take(64, 64, 3) == 0);
  CHECK_FALSE(ring.take(128, 64, 4).has_value());
  ring.passed(3);
  CHECK(ring.empty());
  CHECK(ring.take(256, 64, 4) == 0);
  CHECK_FALSE(ring.take(1, 1, 5).has_value());  // full
}

TEST_CASE("ring space: more than there is, never") {
  RingSpace ring(64);
  CHECK_FALSE(ring.take(65, 1, 1).has_value());
  CHECK(ring.take(64, 1, 1) == 0);
}

TEST_CASE("ring space: what was not used is given back") {
  RingSpace ring(256);
  CHECK(ring.take(64, 64, 1) == 0);
  CHECK(ring.take(128, 64, 2) == 64);
  ring.keep_of_last(32);
  CHECK(ring.take(64, 32, 2) == 96);
  ring.give_back(2);
  CHECK(ring.take(192, 64, 3) == 64);
  ring.give_back(3);
  ring.give_back(1);
  CHECK(ring.empty());
}

TEST_CASE("ring space: random takes never overlap what is in use") {
  std::mt19937 random(11);
  RingSpace ring(1 << 12);
  std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> used;  // begin → end, point
  std::uint64_t point = 0, passed = 0, wraps = 0, refusals = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t bytes = 1 + random() % 700, alignment = std::uint64_t{1} << random() % 9;
    const auto at = ring.take(bytes, alignment, ++point);
    if (at) {
      REQUIRE(*at % alignment == 0);
      REQUIRE(*at + bytes <= ring.bytes());
      for (const auto& [begin, rest] : used) REQUIRE((*at >= rest.first || *at + bytes <= begin));
      wraps += *at == 0 ? 1 : 0;
      used[*at] = {*at + bytes, point};
    } else {
      ++refusals;
      REQUIRE_FALSE(used.empty());
    }
    if (!at || random() % 3 == 0) {
      passed = std::min(point, passed + 1 + random() % 4);
      ring.passed(passed);
      std::erase_if(used, [&](const auto& each) { return each.second.second <= passed; });
    }
  }
  CHECK(wraps > 100);
  CHECK(refusals > 100);
}

}  // namespace kiln::amdgpu_pm4
