#include "core/selector/candidates.hpp"

#include <catch2/catch.hpp>

using namespace kiln;
using namespace kiln::test;

namespace {

std::unique_ptr<DeviceSelector> fixed(const std::string& prefer, Fallback fallback = Fallback::report) {
  SelectorContext context;
  context.device = {prefer, fallback};
  return selector_of("fixed", context);
}

}  // namespace

TEST_CASE("selector fixed: auto is the first candidate, and says so", "[selector]") {
  const Fleet fleet({device_of("one"), device_of("two")});
  const auto all = fleet.candidates();
  const auto choice = fixed("auto")->select(conv(8, 8), all, {});
  REQUIRE(choice);
  CHECK(choice->candidate == 0);
  CHECK(choice->because == "one: the first of 2 candidates (selector fixed)");
}

TEST_CASE("selector fixed: the preferred device is chosen by its id", "[selector]") {
  const Fleet fleet({device_of("one"), device_of("two")});
  const auto all = fleet.candidates();
  const auto choice = fixed("two")->select(conv(8, 8), all, {});
  REQUIRE(choice);
  CHECK(choice->candidate == 1);
  CHECK_THAT(choice->because, Catch::Contains("prefer") && Catch::Contains("two"));
}

TEST_CASE("selector fixed: a preferred device that is no candidate is reported", "[selector]") {
  const Fleet fleet({device_of("one"), device_of("two")});
  const auto all = fleet.candidates();
  for (const Fallback fallback : {Fallback::report, Fallback::never}) {
    const auto other = fixed("three", fallback)->select(conv(8, 8), all, {});
    REQUIRE(other);
    CHECK(other->candidate == 0);
    CHECK_THAT(other->because, Catch::Contains("\"three\" cannot serve") && Catch::Contains("one"));
  }
}

TEST_CASE("selectors: no candidate is unavailable", "[selector]") {
  const auto name = GENERATE("fixed", "learning");
  const auto choice = selector_of(name)->select(conv(8, 8), {}, {});
  REQUIRE_FALSE(choice);
  CHECK(choice.error().code == StatusCode::unavailable);
}

TEST_CASE("selector learning: the user's preference comes before what was learned", "[selector]") {
  const Fleet fleet({device_of("slow"), device_of("fast")});
  SelectorContext context;
  context.device.prefer = "slow";
  const auto selector = selector_of("learning", context);
  for (int i = 0; i < 20; ++i) {
    CHECK(fleet.serve(*selector, conv(8, 8), [](std::size_t d) { return d == 0 ? 100.0 : 1.0; }) == 0);
  }
}
