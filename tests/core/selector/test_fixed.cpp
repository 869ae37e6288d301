#include "core/selector/candidates.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

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

TEST_CASE("selector fixed: the reason in words, also of one candidate", "[selector]") {
  const Fleet two({device_of("one"), device_of("two")}), one({device_of("one")});
  const auto reason = [](const std::string& prefer, const Fleet& fleet) {
    const auto choice = fixed(prefer)->select(conv(8, 8), fleet.candidates(), {});
    return choice ? choice->because : choice.error().text();
  };
  CHECK(reason("auto", one) == "one: the first of 1 candidate (selector fixed)");
  CHECK(reason("two", two) == "[device] prefer = \"two\"");
  CHECK(reason("two", one) == "[device] prefer = \"two\" cannot serve; one: the first of 1 candidate (selector fixed)");
  CHECK(reason("two", Fleet({})) == "unavailable: no device can serve: no candidate exists");
}

TEST_CASE("selector fixed: an explanation has the choice and no figures", "[selector]") {
  const Fleet fleet({device_of("one"), device_of("two")});
  const auto explained = fixed("two")->explain(conv(8, 8), fleet.candidates(), {});
  REQUIRE(explained);
  CHECK(explained->bucket == "any");
  CHECK(explained->choice.candidate == 1);
  CHECK(explained->choice.because == "[device] prefer = \"two\"");
  CHECK(explained->candidates.empty());
  CHECK(explained->words ==
        std::vector<std::string>{"[device] prefer = \"two\"", "selector fixed measures nothing and has no figures"});
}

TEST_CASE("selectors: nothing to explain where there is no candidate", "[selector]") {
  const auto name = GENERATE("fixed", "learning");
  const auto explained = selector_of(name)->explain(conv(8, 8), {}, {});
  REQUIRE_FALSE(explained);
  CHECK(explained.error().text() == "unavailable: no device can serve: no candidate exists");
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

TEST_CASE("selector learning: an explanation names the user's preference, or what it missed", "[selector]") {
  const Fleet fleet({device_of("slow"), device_of("fast")});
  SelectorContext context;
  context.config.policy = "ema";
  context.device.prefer = "slow";
  const auto selector = selector_of("learning", context);
  for (int i = 0; i < 4; ++i) {
    selector->record(conv(64, 56), fleet[0], run_of(9), {});
    selector->record(conv(64, 56), fleet[1], run_of(3), {});
  }
  const auto explained = selector->explain(conv(64, 56), fleet.candidates(), {});
  REQUIRE(explained);
  CHECK(explained->choice.candidate == 0);
  REQUIRE(explained->words.size() == 4);
  CHECK(explained->words[0] == "would choose slow: [device] prefer = \"slow\"");
  CHECK_THAT(explained->words[1],
             Catch::StartsWith("slow: 9 ms = 9 ms run (4 runs, within x") && !Catch::Contains("of the chosen"));
  CHECK_THAT(explained->words[2],
             Catch::StartsWith("fast: 3 ms = 3 ms run (4 runs, within x") && Catch::EndsWith("; x0.3 of the chosen"));
  context.device.prefer = "gone";
  const auto missed =
      selector_of("learning", context)->select(conv(64, 56), Fleet({device_of("one")}).candidates(), {});
  REQUIRE(missed);
  CHECK(missed->because == "[device] prefer = \"gone\" cannot serve; the only candidate; one: not measured yet");
}
