// What a candidate is expected to cost, in figures and in words.
#include "core/selector/candidates.hpp"

#include "selector/performance_model.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
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

ShapeBucket work(const std::string& shape, double flops, double bytes = 0) {
  ShapeBucket made;
  made.operation = "o";
  made.family = "f";
  made.shape = shape;
  made.flops = flops;
  made.bytes = bytes;
  return made;
}

DeviceInfo with_driver(std::string id, std::string driver) {
  DeviceInfo device = device_of(std::move(id));
  device.driver = std::move(driver);
  return device;
}

const Arm& arm_of(const PerformanceModel& model, const std::string& shape) {
  for (const auto& [key, arm] : model.arms()) {
    if (key.shape == shape) return arm;
  }
  FAIL("no arm of " + shape);
  return model.arms().begin()->second;
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
  prospect.uses = 2;
  CHECK(prospect.text() == "a: 2 ms expected (12 runs) + 6 ms queue + 90 ms build shared by 2 runs");
  prospect.uses = 30;
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

// By hand: one shape each, so the deviation of a comparison is hypot(1/2, 1/2, that of the known one): 0.545 squared by
// "a" with one run, 0.5045 squared by "b" with four. By "a" it is 4 ms, by "b" 6 ms; they count by these squares.
TEST_CASE("selector prospect: what never ran is compared with each that did, and the surer of them counts more",
          "[selector]") {
  PerformanceModel model(0.1);
  const DeviceInfo a = device_of("a"), b = device_of("b"), c = device_of("c"), d = device_of("d");
  const ShapeBucket bucket = work("f @3", 0);
  model.learn_run(bucket, a, 1e6, 0);
  for (int i = 0; i < 4; ++i) model.learn_run(bucket, b, 2e6, 0);
  model.learn_run(work("f @1", 1e9), a, 1e6, 0);
  model.learn_run(work("f @1", 1e9), c, 4e6, 0);
  model.learn_run(work("f @2", 1e9), b, 1e6, 0);
  model.learn_run(work("f @2", 1e9), c, 3e6, 0);
  std::vector<Candidate> candidates{{&a, 0, false}, {&b, 0, false}, {&c, 0, false}, {&d, 0, false}};
  do {
    const auto prospects = prospects_of(model, bucket, candidates, {}, 1);
    REQUIRE(prospects.size() == 4);
    for (const Prospect& prospect : prospects) {
      CAPTURE(prospect.device->id);
      if (prospect.device == &a) CHECK(prospect.run_ns() == Approx(1e6));
      if (prospect.device == &b) CHECK(prospect.run_ns() == Approx(2e6));
      if (prospect.device == &d) CHECK(prospect.run.evidence == Evidence::nothing);
      if (prospect.device != &c) continue;
      CHECK(prospect.run.evidence == Evidence::compared);
      CHECK(prospect.run.shapes == 1);
      CHECK(prospect.run_ns() == Approx(4937456.523566952));
      CHECK(prospect.run.log_deviation == Approx(0.7102816342831905));
    }
  } while (std::next_permutation(
      candidates.begin(), candidates.end(),
      [](const Candidate& one, const Candidate& other) { return one.device->id < other.device->id; }));
}

TEST_CASE("selector prospect: a comparison stands in for a regression only where it is surer", "[selector]") {
  const DeviceInfo a = device_of("a"), c = device_of("c");
  for (const double noise : {1.0, 30.0}) {
    PerformanceModel model(0.1);
    for (int i = 1; i < 7; ++i) {
      const double ns = 1e6 * i * (i % 2 == 0 ? noise : 1);
      model.learn_run(work("f @" + std::to_string(i), 1e9 * i), a, ns, 0);
      model.learn_run(work("f @" + std::to_string(i), 1e9 * i), c, 3 * ns, 0);
    }
    const ShapeBucket bucket = work("f @7", 3.5e9);
    for (int i = 0; i < 9; ++i) model.learn_run(bucket, a, 7e6, 0);
    const std::vector<Candidate> candidates{{&a, 0, false}, {&c, 0, false}};
    const auto prospects = prospects_of(model, bucket, candidates, {}, 1);
    REQUIRE(prospects.size() == 2);
    CHECK(prospects[1].run.evidence == (noise == 1 ? Evidence::regression : Evidence::compared));
    CHECK(prospects[1].run_ns() == Approx(noise == 1 ? 10.5e6 : 21e6).epsilon(1e-3));
  }
}

TEST_CASE("selector model: the size of a bucket is the mean of its runs' sizes", "[selector]") {
  PerformanceModel model(0.1);
  const DeviceInfo device = device_of("d");
  model.learn_run(work("f @1", 1e9, 4e6), device, 1e6, 1);
  CHECK(arm_of(model, "f @1").log_flops == Approx(std::log(1e9)));
  CHECK(arm_of(model, "f @1").log_bytes == Approx(std::log(4e6)));
  CHECK(arm_of(model, "f @1").log_transfer.count == 1);  // one nanosecond is a time
  model.learn_run(work("f @1", 4e9, 1e6), device, 4e6, 0);
  CHECK(arm_of(model, "f @1").log_flops == Approx(std::log(2e9)));
  CHECK(arm_of(model, "f @1").log_bytes == Approx(std::log(2e6)));
  CHECK(arm_of(model, "f @1").run.log_ns.mean == Approx(std::log(2e6)));
  CHECK(arm_of(model, "f @1").log_transfer.count == 1);
  for (int i = 0; i < 200; ++i) model.learn_run(work("f @1", 2e9, 2e6), device, 2e6, 0);
  model.learn_run(work("f @1", 2e9 * std::exp(1.0), 2e6), device, 2e6 * std::exp(1.0), 0);  // a tenth of it
  CHECK(arm_of(model, "f @1").log_flops == Approx(std::log(2e9) + 0.1));
  CHECK(arm_of(model, "f @1").run.log_ns.mean == Approx(std::log(2e6) + 0.1));
  model.learn_first(work("f @2", 3e9, 5e6), device, 1e6);
  model.learn_first(work("f @2", 6e9, 9e6), device, 2e6);  // as of the first of them
  CHECK(arm_of(model, "f @2").log_flops == Approx(std::log(3e9)));
  CHECK(arm_of(model, "f @2").log_bytes == Approx(std::log(5e6)));
  // The smallest sizes count as well.
  model.learn_run(work("f @0", 2), device, 1e3, 0);
  CHECK(std::exp(model.estimate(work("f @0", 6), device).log_ns) == Approx(3e3));
  model.learn_run(work("f @0", 8), device, 4e3, 0);
  CHECK(std::exp(model.estimate(work("f @0", 4), device).log_ns) == Approx(2e3));
  CHECK(std::exp(model.estimate(work("f @0", 1), device).log_ns) == Approx(500));
}

TEST_CASE("selector model: the additional time of a first run is of the size that is asked for", "[selector]") {
  PerformanceModel model(0.1);
  const DeviceInfo device = device_of("d");
  model.learn_run(work("f @1", 1e9), device, 2e6, 0);
  model.learn_first(work("f @1", 1e9), device, 5e6);
  CHECK(model.estimate(work("f @1", 1e9), device).first_extra_ns == Approx(3e6));
  CHECK(model.estimate(work("f @1", 4e9), device).first_extra_ns == Approx(12e6));
}

TEST_CASE("selector model: one change is enough for a device to be watched", "[selector]") {
  PerformanceModel model(0.1);
  const DeviceInfo device = device_of("d");
  for (int i = 0; i < 9; ++i) model.learn_run(work("f @1", 1e9), device, 1e6, 0);
  CHECK_FALSE(model.estimate(work("f @1", 1e9), device).drifted);
  Drift drift = Drift::none;
  for (int i = 0; i < 20 && drift == Drift::none; ++i) drift = model.learn_run(work("f @1", 1e9), device, 9e6, 0);
  CHECK(drift == Drift::slower);
  CHECK(arm_of(model, "f @1").run.alarms == 1);
  CHECK(model.estimate(work("f @1", 1e9), device).drifted);
}

TEST_CASE("selector model: shapes without runs or sizes are passed over, wherever they are", "[selector]") {
  PerformanceModel model(0.1);
  const DeviceInfo device = device_of("d");
  model.count_look(work("e @1", 1e9), device);  // before those that ran
  model.learn_run(work("e @2", 0), device, 9e6, 0);
  std::map<ArmKey, Arm> arms = model.arms();
  ArmKey sized = arms.begin()->first;
  sized.shape = "e @3";
  arms[sized].log_flops = std::log(1e9);  // its runs were reset
  model.replace(arms);
  CHECK(model.estimate(work("f @9", 2e9), device).evidence == Evidence::nothing);
  model.learn_run(work("f @1", 1e9), device, 3e6, 0);
  CHECK(model.estimate(work("f @9", 2e9), device).shapes == 1);
  CHECK(std::exp(model.estimate(work("f @9", 2e9), device).log_ns) == Approx(6e6));
  // Where no shape's bytes are known, those of the work do not matter.
  model.learn_run(work("f @2", 2e9), device, 9e6, 0);
  model.learn_run(work("f @3", 3e9), device, 7e6, 0);
  const Estimate with = model.estimate(work("f @9", 2.5e9, 64e6), device),
                 without = model.estimate(work("f @9", 2.5e9), device);
  CHECK(with.shapes == 3);
  CHECK(with.log_ns == Approx(without.log_ns));
  CHECK(with.log_deviation == Approx(without.log_deviation));
}

TEST_CASE("selector model: shapes that one of two devices alone ran are passed over in a comparison", "[selector]") {
  PerformanceModel model(0.1);
  const DeviceInfo a = device_of("a"), b = device_of("b");
  for (const char* shape : {"f @1", "f @3", "f @6"}) model.learn_run(work(shape, 1e9), a, 1e6, 0);
  for (const char* shape : {"f @2", "f @3", "f @4", "f @6"}) model.learn_run(work(shape, 1e9), b, 2e6, 0);
  model.learn_run(work("f @5", 2), a, 1e6, 0);  // of the smallest size
  model.learn_run(work("f @5", 2), b, 2e6, 0);
  Estimate known;
  known.evidence = Evidence::own;
  known.log_ns = std::log(3e6);
  CHECK(model.compared(work("f @9", 0), b, a, known).shapes == 3);
  CHECK(std::exp(model.compared(work("f @9", 0), b, a, known).log_ns) == Approx(6e6));
}

TEST_CASE("selector model: a device that is not open is known by its own drivers of this operation alone",
          "[selector]") {
  PerformanceModel model(0.1);
  DeviceInfo unopened = with_driver("d", "");
  unopened.driver_identity.clear();
  const ShapeBucket bucket = work("f @1", 1e9);
  ShapeBucket other_operation = bucket;
  other_operation.operation = "p";
  model.learn_run(bucket, with_driver("d", "1"), 5e6, 0);
  model.learn_first(bucket, with_driver("d", "1"), 7e6);  // as many first runs as later ones
  model.count_look(bucket, with_driver("d", "2"));
  for (const char* id : {"c", "e"}) model.learn_run(bucket, with_driver(id, "3"), 1e6, 0);
  model.learn_run(other_operation, with_driver("d", "4"), 1e6, 0);
  CHECK(model.estimate(bucket, unopened).evidence == Evidence::own);
  CHECK(std::exp(model.estimate(bucket, unopened).log_ns) == Approx(5e6));
}

TEST_CASE("selector model: looks are taken over from each driver under which nothing ran", "[selector]") {
  PerformanceModel model(0.1);
  const ShapeBucket bucket = work("f @1", 1e9);
  model.learn_run(work("f @2", 1e9), with_driver("d", "1"), 1e6, 0);  // another shape alone
  model.learn_run(bucket, with_driver("d", "2"), 1e6, 0);
  model.learn_first(bucket, with_driver("d", "2"), 1e6);
  model.count_look(bucket, with_driver("d", "2"));
  model.count_look(bucket, with_driver("d", "3"));
  model.settle_driver(bucket, with_driver("d", "0"));
  CHECK(model.looks(bucket, with_driver("d", "0")) == 1);
  CHECK(model.looks(bucket, with_driver("d", "2")) == 1);
  CHECK(model.looks(bucket, with_driver("d", "3")) == 0);
}

TEST_CASE("selector model: what is learned after a merge is newer than all that it brought", "[selector]") {
  std::map<ArmKey, Arm> arms;
  arms[{"o", "d", "", "f @2"}].used = std::uint64_t{1} << 60;
  arms[{"o", "d", "", "f @3"}].used = 5;
  PerformanceModel model(0.1);
  model.replace(arms);
  model.learn_run(work("f @1", 1e9), device_of("d"), 1e6, 0);
  CHECK(arm_of(model, "f @1").used == (std::uint64_t{1} << 60) + 1);
}
