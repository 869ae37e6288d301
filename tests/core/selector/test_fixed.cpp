#include "core/selector/candidates.hpp"

#include "selector/selectors.hpp"

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

TEST_CASE("selector learning: an explanation knows what an earlier process learned, and the runs of the job",
          "[selector]") {
  const TemporaryFolder folder;
  const Fleet fleet({device_of("one"), device_of("two")});
  SelectorContext context;
  context.cache_directory = folder.path();
  context.config.exploration = 0.255;
  RunConditions built, loaded;
  built.build_ns = 80'000'000;
  loaded.build_ns = 20'000'000;
  Measurement compiled = run_of(3), from_disk = run_of(3);
  compiled.tier = Tier::built;
  from_disk.tier = Tier::disk;
  {
    const auto selector = selector_of("learning", context);
    selector->record(conv(64, 56), fleet[0], compiled, built);
    selector->record(conv(64, 56), fleet[0], from_disk, loaded);
  }
  const std::pair<std::int64_t, double> sides[] = {{56, 20e6}, {112, 80e6}};  // loaded where it ran before
  for (const auto& [side, build_ns] : sides) {
    const std::vector<Candidate> cold{{&fleet[0], 0, true}, {&fleet[1], 0, true}};
    JobTerms terms;
    terms.repeat = 8;
    const auto explained = selector_of("learning", context)->explain(conv(64, side), cold, terms);
    REQUIRE(explained);
    REQUIRE(explained->candidates.size() == 2);
    CHECK(explained->candidates[0].build_ns == Approx(build_ns));
    REQUIRE(explained->words.size() == 4);
    CHECK_THAT(explained->words[1],
               Catch::Contains(side == 56 ? "20 ms build ÷ 8 runs (2 runs" : "80 ms build ÷ 8 runs"));
    CHECK_THAT(explained->words[3],
               Catch::StartsWith("exploration may take 25.5 % of the time; in this process it took "));
  }
}

TEST_CASE("selector learning: an exploration run counts in the next process although nothing came back", "[selector]") {
  const TemporaryFolder folder;
  const Fleet fleet({device_of("one"), device_of("two")});
  SelectorContext context;
  context.cache_directory = folder.path();
  for (int process = 1; process < 4; ++process) {
    const auto choice = selector_of("learning", context)->select(conv(64, 56), fleet.candidates(), {});
    REQUIRE(choice);
    CHECK(choice->candidate == (process == 2 ? 1u : 0u));
    CHECK_THAT(choice->because, Catch::StartsWith(process == 3 ? "exploration run 2 of" : "exploration run 1 of"));
  }
}

TEST_CASE("selectors: what is registered already is an error", "[selector]") {
  Registry registry;
  const auto make = [](const SelectorContext&) -> Result<std::unique_ptr<DeviceSelector>> {
    return internal_error("");
  };
  REQUIRE(registry.add_selector("plugin", "fixed", make).ok());
  const Status status = register_selectors(registry);
  CHECK_THAT(status.message, Catch::Contains("fixed"));
  CHECK_FALSE(registry.selector("learning"));
}
