// What a candidate is expected to cost, in figures and in words.
#include "core/selector/candidates.hpp"

#include "selector/performance_model.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

using namespace kiln;
using namespace kiln::selector;
using namespace kiln::test;

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

Estimate estimate(Evidence evidence, double run_ms, std::uint64_t runs = 0, std::size_t shapes = 0) {
  Estimate made;
  made.evidence = evidence;
  made.log_ns = std::log(run_ms * 1e6);
  made.runs = runs;
  made.shapes = shapes;
  return made;
}

}  // namespace

TEST_CASE("selector words: times have three digits and a unit", "[selector]") {
  const std::pair<double, std::string> texts[] = {{0, "0 ms"},         {480e3, "0.48 ms"},  {1234567, "1.23 ms"},
                                                  {999.4e6, "999 ms"}, {999.5e6, "1 s"},    {1e9, "1 s"},
                                                  {2.1e9, "2.1 s"},    {123456e6, "123 s"}, {infinite, "unknown"}};
  for (const auto& [ns, text] : texts) CHECK(duration_text(ns) == text);
}

TEST_CASE("selector words: evidence is told with its number", "[selector]") {
  const std::pair<Estimate, std::string> texts[] = {
      {estimate(Evidence::own, 1, 1), "1 run"},
      {estimate(Evidence::own, 1, 12), "12 runs"},
      {estimate(Evidence::first, 1, 1), "1 first run, no later one"},
      {estimate(Evidence::first, 1, 2), "2 first runs, no later one"},
      {estimate(Evidence::regression, 1, 0, 1), "scaled from another shape"},
      {estimate(Evidence::regression, 1, 0, 2), "by regression on 2 other shapes"},
      {estimate(Evidence::compared, 1, 0, 1), "compared with another device on 1 other shape"},
      {estimate(Evidence::compared, 1, 0, 3), "compared with another device on 3 other shapes"},
      {estimate(Evidence::roof, 1), "at best, by the roof of the device"},
      {Estimate{}, "not measured yet"},
      {estimate(Evidence::invalid, 1), "not measured yet"}};
  for (const auto& [found, text] : texts) CHECK(evidence_text(found) == text);
}

TEST_CASE("selector prospect: the one-time waits are shared by the runs of the job, the build by those expected",
          "[selector]") {
  DeviceInfo device = device_of("a");
  Prospect prospect;
  prospect.device = &device;
  prospect.run = estimate(Evidence::own, 2, 12);
  prospect.run.transfer_ns = 0.5e6;
  prospect.run.log_deviation = 0.25;
  prospect.queue_ns = 6e6;
  prospect.build_ns = 90e6;
  prospect.uses = 30;
  prospect.repeat = 4;
  prospect.looks = 2;
  CHECK(prospect.fixed_ns() == Approx(1.5e6 + 3e6));
  CHECK(prospect.run_ns() == Approx(2e6));
  CHECK(prospect.cost_ns() == Approx(6.5e6));
  CHECK(prospect.now_ns() == Approx(6e6 + 90e6 + 8e6));
  CHECK(prospect.text() == "a: 2 ms expected (12 runs) + 6 ms queue + 90 ms build shared by 30 runs");
  CHECK_FALSE(prospect.hopeless(0.66e6));
  CHECK(prospect.hopeless(0.64e6));
  CandidateCost cost = prospect.figures();
  CHECK(cost.device == "a");
  CHECK(cost.evidence == "12 runs");
  CHECK(cost.runs == 12);
  CHECK(cost.looks == 2);
  CHECK_FALSE(cost.cold);
  CHECK(cost.queue_ns == 6e6);
  CHECK(cost.transfer_ns == 0.5e6);
  CHECK(cost.build_ns == 90e6);
  CHECK(cost.run_ns == Approx(1.5e6));
  CHECK(cost.cost_ns == Approx(6.5e6));
  CHECK(cost.deviation == 0.25);
  for (const bool serializes : {false, true}) {
    for (const bool cold : {false, true}) {
      device.serializes = serializes;
      prospect.cold = cold;
      CHECK(prospect.needs_compiler() == (serializes && cold));
      CHECK(prospect.figures().cold == cold);
    }
  }
  prospect.uses = 1;
  prospect.run.transfer_ns = 3e6;  // more than the run: of another moment
  CHECK(prospect.text() == "a: 2 ms expected (12 runs) + 6 ms queue + 90 ms build");
  CHECK(prospect.figures().transfer_ns == Approx(2e6));
  CHECK(prospect.figures().run_ns == Approx(0).margin(1));

  prospect.run = estimate(Evidence::roof, 2);
  CHECK(prospect.run.known());
  CHECK_FALSE(prospect.run.measured());
  CHECK(prospect.run_ns() == Approx(2e6));
  CHECK(prospect.now_ns() == infinite);
  prospect.run = {};
  CHECK_FALSE(prospect.run.known());
  CHECK(prospect.run_ns() == infinite);
  CHECK(prospect.cost_ns() == infinite);
  CHECK(prospect.figures().deviation == infinite);
  prospect.queue_ns = prospect.build_ns = 0;
  CHECK(prospect.text() == "a: not measured yet");
}

TEST_CASE("selector prospect: the best cost is the least of what was measured", "[selector]") {
  const DeviceInfo devices[] = {device_of("a"), device_of("b"), device_of("c"), device_of("d")};
  std::vector<Prospect> prospects(4);
  for (std::size_t i = 0; i < 4; ++i) prospects[i].device = &devices[i];
  CHECK(best_cost_ns(prospects) == infinite);
  CHECK(best_cost_ns({}) == infinite);
  prospects[0].run = estimate(Evidence::roof, 0.1);
  CHECK(best_cost_ns(prospects) == infinite);
  prospects[1].run = estimate(Evidence::regression, 3, 0, 2);
  prospects[2].run = estimate(Evidence::own, 2, 5);
  prospects[2].queue_ns = 2e6;
  CHECK(best_cost_ns(prospects) == Approx(3e6));
  prospects[2].queue_ns = 0.5e6;
  CHECK(best_cost_ns(prospects) == Approx(2.5e6));
  CHECK(text_of(prospects, 1) ==
        "b: 3 ms expected (by regression on 2 other shapes), a: 0.1 ms expected (at best, by the roof of the device), "
        "c: 2 ms expected (5 runs) + 0.5 ms queue, d: not measured yet");
}

TEST_CASE("selector prospect: what a model knows of each candidate, for the terms of a job", "[selector]") {
  PerformanceModel model(0.1);
  const DeviceInfo a = device_of("a"), b = device_of("b", 100);
  const ShapeBucket bucket = conv(64, 56);
  for (int i = 0; i < 5; ++i) model.learn_run(bucket, a, 2e6, 0.5e6);
  model.learn_first(bucket, a, 7e6);
  model.learn_build(bucket, a, load_shape, 20e6);
  model.learn_build(bucket, a, build_shape, 80e6);
  model.learn_build(bucket, b, build_shape, 60e6);
  model.count_look(bucket, b);
  const std::vector<Candidate> candidates{{&a, 3'000'000, true}, {&b, 0, true}};
  JobTerms terms;
  terms.repeat = 0;
  auto prospects = prospects_of(model, bucket, candidates, terms, 6);
  REQUIRE(prospects.size() == 2);
  CHECK(prospects[0].device == &a);
  CHECK(prospects[0].run.evidence == Evidence::own);
  CHECK(prospects[0].run.runs == 5);
  CHECK(prospects[0].run_ns() == Approx(2e6));
  CHECK(prospects[0].run.transfer_ns == Approx(0.5e6));
  CHECK(prospects[0].queue_ns == 3e6);
  CHECK(prospects[0].build_ns == Approx(25e6));  // it ran before, so it is on disk; a first run takes 5 ms more
  CHECK(prospects[0].repeat == 1);
  CHECK(prospects[0].uses == 6);
  CHECK(prospects[0].looks == 0);
  CHECK(prospects[1].run.evidence == Evidence::roof);
  CHECK(prospects[1].run_ns() == Approx(231211008 / 100.0));
  CHECK(prospects[1].build_ns == Approx(60e6));  // never run here
  CHECK(prospects[1].looks == 1);
  terms.repeat = 8;
  prospects = prospects_of(model, bucket, std::vector<Candidate>{{&a, 0, false}}, terms, 6);
  CHECK(prospects[0].build_ns == 0);
  CHECK(prospects[0].repeat == 8);
  CHECK(prospects[0].uses == 8);
  CHECK_FALSE(prospects[0].cold);
}
