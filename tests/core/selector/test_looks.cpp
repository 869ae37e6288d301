#include "core/selector/candidates.hpp"

#include <catch2/catch.hpp>

using namespace kiln;
using namespace kiln::test;

TEST_CASE("selector looks: every unknown candidate is looked at, and the reason says so", "[selector]") {
  const Fleet fleet({device_of("one"), device_of("two"), device_of("three")});
  const auto selector = learning();
  const auto all = fleet.candidates();
  const auto choice = selector->select(conv(64, 56), all, {});
  CHECK_THAT(choice->because, Catch::StartsWith("exploration run 1 of at most 3; one: not measured yet"));
  std::vector<int> visits(3);
  selector->record(conv(64, 56), fleet[0], run_of(4), {});
  for (int i = 0; i < 8; ++i) ++visits[fleet.serve(*selector, conv(64, 56), [](std::size_t) { return 4.0; })];
  for (const int count : visits) CHECK(count >= 1);
}

TEST_CASE("selector looks: at most three where nothing comes back", "[selector]") {
  const Fleet fleet({device_of("works"), device_of("fails")});
  const auto selector = learning();
  int failed = 0;
  for (int i = 0; i < 50; ++i) {
    const auto all = fleet.candidates();
    const std::size_t chosen = selector->select(conv(64, 56), all, {})->candidate;
    failed += chosen == 1;
    if (chosen == 0) selector->record(conv(64, 56), fleet[0], run_of(4), {});
  }
  CHECK(failed == 3);
}

TEST_CASE("selector looks: where no candidate answers, the first serves", "[selector]") {
  const Fleet fleet({device_of("one"), device_of("two")});
  const auto selector = learning();
  const auto all = fleet.candidates();
  for (int i = 0; i < 6; ++i) {
    CHECK_THAT(selector->select(conv(64, 56), all, {})->because, Catch::StartsWith("exploration run"));
  }
  const auto choice = selector->select(conv(64, 56), all, {});
  CHECK(choice->candidate == 0);
  CHECK_THAT(choice->because, Catch::Contains("gave no estimate"));
}

TEST_CASE("selector looks: one look is enough at what is clearly slower", "[selector]") {
  const Fleet fleet({device_of("fast"), device_of("slow")});
  const auto selector = learning();
  int slow = 0;
  for (int i = 0; i < 100; ++i) {
    slow += fleet.serve(*selector, conv(64, 56), [](std::size_t d) { return d == 0 ? 0.5 : 60.0; }) == 1;
  }
  CHECK(slow == 1);
}

TEST_CASE("selector looks: hopeless on a large shape is hopeless on a smaller one: no look at all", "[selector]") {
  const Fleet fleet({device_of("fast"), device_of("slow")});
  const auto selector = learning();
  // 100 times slower at every size, as a software rasterizer is.
  int slow = 0;
  for (const std::int64_t side : {112, 80, 56, 28, 14}) {
    for (int i = 0; i < 10; ++i) {
      const double work = static_cast<double>(side * side) * 1e-3;
      slow += fleet.serve(*selector, conv(64, side), [&](std::size_t d) { return d == 0 ? work : 100 * work; }) == 1;
    }
  }
  CHECK(slow == 1);
}

TEST_CASE("selector looks: hopeless on a small shape may win on a large one: tried when there is time for it",
          "[selector]") {
  const Fleet fleet({device_of("small"), device_of("large")});
  const auto selector = learning("thompson", 0.5);
  // A device with a start-up cost of 2 ms that is then twenty times faster.
  const auto ms = [](std::int64_t side) {
    const double work = static_cast<double>(side * side) * 1e-3;
    return [work](std::size_t d) { return d == 0 ? work : 2 + work / 20; };
  };
  for (int i = 0; i < 10; ++i) fleet.serve(*selector, conv(64, 8), ms(8));
  std::size_t last = 0;
  int large_before = 0;
  for (int i = 0; i < 100; ++i) {
    last = fleet.serve(*selector, conv(64, 112), ms(112));
    large_before += i < 40 && last == 1;
  }
  CHECK(last == 1);
  CHECK(large_before == 0);  // predicted 30 times slower: not before half of a second of work was done
}

TEST_CASE("selector looks: a roof gives a device its first expectation", "[selector]") {
  const Fleet fleet({device_of("slow", 1), device_of("fast", 1000)});
  const auto selector = learning();
  const KernelSpec spec = conv(64, 56);
  const auto all = fleet.candidates();
  const auto choice = selector->select(spec, all, {});
  CHECK(choice->candidate == 1);
  CHECK_THAT(choice->because, Catch::Contains("by the roof of the device"));
  selector->record(spec, fleet[1], run_of(0.5), {});
  // At its roof "slow" would take 231 ms: hopeless, and no time was earned to try it.
  for (int i = 0; i < 10; ++i) CHECK(fleet.serve(*selector, spec, [](std::size_t) { return 0.5; }) == 1);
}

TEST_CASE("selector looks: a device of which nothing is known comes before one that can be expected", "[selector]") {
  const Fleet fleet({device_of("known"), device_of("unknown")});
  const auto selector = learning();
  selector->record(conv(64, 28), fleet[0], run_of(50), {});
  selector->record(conv(64, 14), fleet[0], run_of(12), {});
  CHECK(selector->select(conv(64, 56), fleet.candidates(), {})->candidate == 1);
}

TEST_CASE("selector looks: each user's kernel is learned by itself", "[selector]") {
  const Fleet fleet({device_of("one"), device_of("two")});
  const auto selector = learning();
  UserKernelSpec first, second;
  first.text = "void main() { first(); }";
  second.text = "void main() { second(); }";
  first.dialect = second.dialect = Dialect::glsl;
  for (int i = 0; i < 10; ++i) {
    fleet.serve(*selector, first, [](std::size_t d) { return d == 0 ? 1.0 : 9.0; });
    fleet.serve(*selector, second, [](std::size_t d) { return d == 0 ? 9.0 : 1.0; });
  }
  const auto all = fleet.candidates();
  CHECK(selector->select(first, all, {})->candidate == 0);
  CHECK(selector->select(second, all, {})->candidate == 1);
}
