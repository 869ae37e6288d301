// A roof is what a device could do at best: it is reason enough to look, and none to choose.
#include "core/selector/candidates.hpp"

#include <catch2/catch.hpp>

using namespace kiln;
using namespace kiln::test;

namespace {

const KernelSpec spec = conv(64, 56);  // 0.23 GFLOP: 0.23 ms at a roof of 1000

JobTerms urgent() {
  JobTerms terms;
  terms.has_deadline = true;
  return terms;
}

}  // namespace

TEST_CASE("selector roofs: a job with a deadline goes to what was measured, not to a promise", "[selector]") {
  const Fleet fleet({device_of("known", 1000), device_of("promising", 1000)});
  const auto selector = learning("ema");
  const auto all = fleet.candidates();
  for (int i = 0; i < 4; ++i) selector->record(spec, fleet[0], run_of(3), {});
  for (int i = 0; i < 20; ++i) CHECK(selector->select(spec, all, urgent())->candidate == 0);
  CHECK(selector->select(spec, all, {})->candidate == 1);  // without one it is looked at
}

TEST_CASE("selector roofs: where no device was measured the higher roof serves a job with a deadline", "[selector]") {
  const Fleet fleet({device_of("low", 100), device_of("high", 1000), device_of("untold")});
  const auto choice = learning("ema")->select(spec, fleet.candidates(), urgent());
  CHECK(choice->candidate == 1);
  CHECK_THAT(choice->because, Catch::Contains("by the roof of the device"));
}

TEST_CASE("selector roofs: a device from whose looks nothing came back is left, whatever it promises", "[selector]") {
  const auto policy = GENERATE("ema", "epsilon", "ucb", "thompson");
  CAPTURE(policy);
  const Fleet fleet({device_of("works", 100), device_of("fails", 1000)});
  const auto selector = learning(policy);
  const auto all = fleet.candidates();
  RunConditions failed;
  failed.status = internal_error("told by the test");
  int first = 0, later = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto choice = selector->select(spec, all, {});
    const bool works = choice->candidate == 0;
    if (!works) ++(i < 20 ? first : later);
    if (!works && i >= 20) CHECK_THAT(choice->because, Catch::Contains("charged to the exploration budget"));
    selector->record(spec, fleet[choice->candidate], works ? run_of(4) : Measurement{},
                     works ? RunConditions{} : failed);
  }
  CHECK(first == 3);
  CHECK(later > 0);   // it may have been mended
  CHECK(later <= 3);  // charged as ten times slower: 40 ms of 2 % of 4 s
}

TEST_CASE("selector roofs: a comparison that rests on runs is preferred, however unsure it is", "[selector]") {
  const Fleet fleet({device_of("one", 1000), device_of("two", 1000)});
  const auto selector = learning("ema");
  for (int i = 0; i < 4; ++i) {
    selector->record(conv(8, 7), fleet[0], run_of(0.1), {});
    selector->record(conv(8, 7), fleet[1], run_of(0.4), {});
    selector->record(spec, fleet[0], run_of(3), {});
  }
  const auto explained = selector->explain(spec, fleet.candidates(), {});
  REQUIRE(explained);
  CHECK(explained->candidates[1].evidence.find("roof") == std::string::npos);
}

TEST_CASE("selector roofs: a job does not wait for a compiler because of a promise", "[selector]") {
  DeviceInfo compiled = device_of("compiled", 1000);
  compiled.serializes = true;
  const Fleet fleet({device_of("at hand", 1000), compiled});
  const auto selector = learning("ema");
  JobTerms terms;
  terms.can_build_ahead = true;
  auto all = fleet.candidates();
  all[1].cold = true;
  selector->record(spec, fleet[0], run_of(5), {});
  const auto choice = selector->select(spec, all, terms);
  CHECK(choice->candidate == 0);
  CHECK(choice->build_ahead == 1u);
}
