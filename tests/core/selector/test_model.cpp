#include "core/selector/candidates.hpp"
#include "core/selector/simulated_world.hpp"

#include "selector/performance_model.hpp"
#include "selector/statistics.hpp"

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

TEST_CASE("selector average: first samples count alike, later ones by alpha", "[selector]") {
  Average average;
  average.add(1, 0.1);
  average.add(3, 0.1);
  CHECK(average.mean == Approx(2));
  CHECK(average.variance == Approx(1));
  for (int i = 0; i < 200; ++i) average.add(5, 0.1);
  CHECK(average.mean == Approx(5).margin(1e-6));
  CHECK(average.variance == Approx(0).margin(1e-6));
  CHECK(average.count == 202);
  average.add(15, 0.1);
  CHECK(average.mean == Approx(6));
}

TEST_CASE("selector average: two halves merged are the whole", "[selector]") {
  Average first, second, whole;
  for (const double value : {1.0, 2.0, 4.0}) first.add(value, 0.01), whole.add(value, 0.01);
  for (const double value : {7.0, 5.0}) second.add(value, 0.01), whole.add(value, 0.01);
  const Average both = merged(first, second);
  CHECK(both.mean == Approx(whole.mean));
  CHECK(both.variance == Approx(whole.variance));
  CHECK(both.count == 5);
}

TEST_CASE("selector buckets: about the same work of the same family", "[selector]") {
  const ShapeBucket bucket = conv(64, 56);
  CHECK(bucket.operation == "conv2d");
  CHECK(bucket.shape == "3x3 dense direct f32 @28.0/21");
  CHECK(bucket.flops == Approx(231211008));
  CHECK(ShapeBucket(conv(64, 57)).shape == bucket.shape);
  CHECK(ShapeBucket(conv(64, 112)).shape != bucket.shape);
  CHECK(ShapeBucket(conv(64, 168, 1)).shape != bucket.shape);
  Conv2dSpec depthwise = conv(64, 56);
  depthwise.groups = 64;
  CHECK(ShapeBucket(depthwise).family == "3x3 depthwise direct f32");
  CHECK(ShapeBucket(GemmSpec{64, 64, 64}).shape == "full f32 @19.0/16");
  CHECK(ShapeBucket(GemmSpec{1, 64, 64}).family == "thin f32");
}

TEST_CASE("selector model: estimates come from the bucket, other shapes, the roof, in this order", "[selector]") {
  PerformanceModel model(0.1);
  const DeviceInfo device = device_of("d", 100);
  const ShapeBucket middle = conv(64, 56);
  const auto ns_of = [&](const Conv2dSpec& spec) { return std::exp(model.estimate(ShapeBucket(spec), device).log_ns); };

  CHECK(model.estimate(middle, device).evidence == Evidence::roof);
  CHECK(model.estimate(middle, device).log_deviation == 1);
  CHECK(ns_of(conv(64, 56)) == Approx(2.312e6).epsilon(0.01));
  CHECK(model.estimate(middle, device_of("e")).evidence == Evidence::nothing);

  model.learn_first(middle, device, 9e7);
  CHECK(model.estimate(middle, device).evidence == Evidence::first);
  model.learn_run(middle, device, 8e6, 1e6);
  CHECK(model.estimate(middle, device).evidence == Evidence::own);
  CHECK(model.estimate(middle, device).runs == 1);
  CHECK(model.estimate(middle, device).transfer_ns == Approx(1e6));
  CHECK(model.estimate(middle, device).first_extra_ns == Approx(8.2e7));
  CHECK(ns_of(conv(64, 56)) == Approx(8e6));
  CHECK(ns_of(conv(64, 57)) == Approx(8e6 * 57 * 57 / 56 / 56));  // scaled within its bucket

  CHECK(model.estimate(ShapeBucket(conv(64, 72)), device).evidence == Evidence::regression);
  CHECK(ns_of(conv(64, 112)) == Approx(32e6));
  CHECK(model.estimate(ShapeBucket(conv(64, 224)), device).log_deviation >
        model.estimate(ShapeBucket(conv(64, 72)), device).log_deviation);
  CHECK(model.estimate(ShapeBucket(conv(64, 168, 1)), device).log_deviation > 0.7);  // another family
}

TEST_CASE("selector model: what a program costs to get is known by where it comes from", "[selector]") {
  PerformanceModel model(0.1);
  const DeviceInfo device = device_of("d");
  const ShapeBucket ran = conv(64, 56), fresh = conv(64, 112);
  CHECK(model.build_ns(ran, device) == 0);
  model.learn_build(ran, device, build_shape, 2e8);
  model.learn_build(ran, device, load_shape, 1e6);
  model.learn_run(ran, device, 1e6, 0);
  CHECK(model.build_ns(ran, device) == Approx(1e6));    // it ran before: it lies on disk
  CHECK(model.build_ns(fresh, device) == Approx(2e8));  // the compiler is to be asked
  model.count_look(fresh, device);
  CHECK(model.build_ns(fresh, device) == Approx(2e8));  // chosen once, but it did not run
  model.learn_first(ran, device, 2e6);
  CHECK(model.build_ns(ran, device) == Approx(1e6));
  model.learn_first(fresh, device, 2e6);
  CHECK(model.build_ns(fresh, device) == Approx(1e6));
}

TEST_CASE("selector model: two devices that compare alike on other shapes are expected to do so again", "[selector]") {
  PerformanceModel model(0.1);
  const DeviceInfo fast = device_of("fast"), slow = device_of("slow");
  int n = 0;
  for (const KernelSpec& spec : different_buckets(12)) {
    // Times that FLOPs say nothing about; the ratio is 5.
    const double ns = 1e6 * (1 + (n++ * 7) % 11);
    model.learn_run(ShapeBucket(spec), fast, ns, 0);
    model.learn_run(ShapeBucket(spec), slow, 5 * ns, 0);
  }
  const ShapeBucket unseen = conv(48, 40);
  model.learn_run(unseen, fast, 3.3e6, 0);
  const Estimate found = model.compared(unseen, slow, fast, model.estimate(unseen, fast));
  CHECK(std::exp(found.log_ns) == Approx(16.5e6).epsilon(0.01));
  CHECK(found.log_deviation < model.estimate(unseen, slow).log_deviation);
}

// By hand: one shape, so the deviation is the guessed one of a comparison, 1/2, of the mean and of a single ratio.
TEST_CASE("selector model: a comparison by one shape has these values", "[selector]") {
  PerformanceModel model(0.1);
  const DeviceInfo fast = device_of("fast"), slow = device_of("slow");
  const ShapeBucket bucket = conv(64, 56);
  model.learn_run(bucket, fast, 1e6, 0);
  model.learn_run(bucket, slow, 4e6, 0);
  Estimate known;
  known.evidence = Evidence::own;
  known.log_ns = std::log(3e6);
  const Estimate found = model.compared(bucket, slow, fast, known);
  CHECK(found.evidence == Evidence::compared);
  CHECK(found.shapes == 1);
  CHECK(std::exp(found.log_ns) == Approx(12e6));
  CHECK(found.log_deviation == Approx(0.7071067811865476));
  known.log_deviation = 1.5;
  CHECK(model.compared(bucket, slow, fast, known).log_deviation == Approx(1.6583123951777));  // sqrt(1/4 + 1/4 + 9/4)
  CHECK(model.compared(bucket, device_of("new"), fast, known).evidence == Evidence::nothing);
}

namespace {

ShapeBucket sized(const std::string& family, double flops) {
  ShapeBucket made;
  made.operation = "o";
  made.family = family;
  made.shape = family + " @" + std::to_string(flops);
  made.flops = flops;
  return made;
}

}  // namespace

// By hand: the weight of a shape is exp(-octaves² / 32), half of it for another family; the guessed deviation of 1/2
// counts as two shapes.
TEST_CASE("selector model: a comparison weighs shapes by distance and family", "[selector]") {
  const DeviceInfo fast = device_of("fast"), slow = device_of("slow");
  Estimate known;
  known.evidence = Evidence::own;
  known.log_ns = std::log(3e6);
  const auto learned = [&](const std::vector<std::pair<ShapeBucket, double>>& shapes) {
    PerformanceModel model(0.1);
    for (const auto& [bucket, ratio] : shapes) {
      model.learn_run(bucket, fast, 1e6, 0);
      model.learn_run(bucket, slow, ratio * 1e6, 0);
    }
    return model;
  };
  const ShapeBucket bucket = sized("f", 1e9);
  // Half a shape says nothing.
  CHECK(learned({{sized("g", 1e9), 4}}).compared(bucket, slow, fast, known).evidence == Evidence::nothing);
  const Estimate others = learned({{sized("g", 1e9), 4}, {sized("h", 1e9), 4}}).compared(bucket, slow, fast, known);
  CHECK(others.shapes == 2);
  CHECK(std::exp(others.log_ns) == Approx(12e6));
  CHECK(others.log_deviation == Approx(0.7071067811865476));
  const Estimate far = learned({{sized("f", 16e9), 4}}).compared(bucket, slow, fast, known);
  CHECK(far.log_deviation == Approx(0.9079).epsilon(1e-4));
  const Estimate near = learned({{sized("f", 1e9 / 16), 4}}).compared(bucket, slow, fast, known);
  CHECK(near.log_deviation == Approx(0.9079).epsilon(1e-4));
  const Estimate spread =
      learned({{sized("f", 1e9), 2}, {sized("f", 1.000001e9), 8}}).compared(bucket, slow, fast, known);
  CHECK(spread.shapes == 2);
  CHECK(std::exp(spread.log_ns) == Approx(12e6));
  CHECK(spread.log_deviation == Approx(0.8546656).epsilon(1e-5));
  // Work without FLOPs has no distance, and shapes without FLOPs have no say.
  ShapeBucket unsized = sized("f", 0);
  CHECK(learned({{sized("f", 16e9), 4}}).compared(unsized, slow, fast, known).log_deviation ==
        Approx(0.7071067811865476));
  CHECK(learned({{unsized, 4}}).compared(bucket, slow, fast, known).evidence == Evidence::nothing);
}

TEST_CASE("selector model: first runs are compared with first runs where a device has no others", "[selector]") {
  const DeviceInfo fast = device_of("fast"), slow = device_of("slow");
  const ShapeBucket bucket = sized("f", 1e9);
  Estimate known;
  known.evidence = Evidence::own;
  known.log_ns = std::log(3e6);
  PerformanceModel model(0.1);
  model.learn_first(bucket, fast, 1e6);
  CHECK(model.compared(bucket, slow, fast, known).evidence == Evidence::nothing);
  model.learn_run(bucket, slow, 7e6, 0);
  CHECK(model.compared(bucket, slow, fast, known).evidence == Evidence::nothing);
  CHECK(model.compared(bucket, fast, slow, known).evidence == Evidence::nothing);
  model.learn_first(bucket, slow, 5e6);
  CHECK(std::exp(model.compared(bucket, slow, fast, known).log_ns) == Approx(15e6));
  model.learn_run(bucket, fast, 3.5e6, 0);
  CHECK(std::exp(model.compared(bucket, slow, fast, known).log_ns) == Approx(6e6));
}

// By hand: 0.3 for scaling, two octaves, 0.5 for first runs.
TEST_CASE("selector model: another shape is expected by steady runs, else by first runs, of this driver alone",
          "[selector]") {
  PerformanceModel model(0.1);
  const DeviceInfo device = device_of("d");
  DeviceInfo other_driver = device, next_device = device_of("e");
  other_driver.driver_identity = {{"version", "2"}};
  ShapeBucket next_operation = sized("f", 1e9);
  next_operation.operation = "p";
  for (const DeviceInfo& other : {other_driver, next_device}) model.learn_run(sized("f", 1e9), other, 1e6, 0);
  model.learn_run(next_operation, device, 1e6, 0);
  const ShapeBucket unseen = sized("f", 4e9);
  CHECK(model.estimate(unseen, device).evidence == Evidence::nothing);
  model.count_look(sized("f", 2e9), device);
  CHECK(model.estimate(unseen, device).evidence == Evidence::nothing);
  model.learn_first(sized("f", 1e9), device, 8e6);
  const Estimate first = model.estimate(unseen, device);
  CHECK(first.evidence == Evidence::regression);
  CHECK(first.shapes == 1);
  CHECK(std::exp(first.log_ns) == Approx(32e6));
  CHECK(first.log_deviation == Approx(std::sqrt(0.3 * 0.3 + 0.5 * 0.5 + 0.5 * 0.5)));
  model.learn_run(sized("f", 2e9), device, 3e6, 0);
  const Estimate steady = model.estimate(unseen, device);
  CHECK(steady.shapes == 1);
  CHECK(std::exp(steady.log_ns) == Approx(6e6));
  CHECK(steady.log_deviation == Approx(std::hypot(0.3, 0.25)));
  CHECK(model.estimate(sized("f", 0), device).evidence == Evidence::nothing);
}

TEST_CASE("selector model: first runs of the bucket itself, scaled within it", "[selector]") {
  PerformanceModel model(0.1);
  const DeviceInfo device = device_of("d");
  ShapeBucket bucket = sized("f", 1e9);
  model.learn_first(bucket, device, 4e6);
  model.learn_first(bucket, device, 4e6);
  bucket.flops = 2e9;
  const Estimate first = model.estimate(bucket, device);
  CHECK(first.evidence == Evidence::first);
  CHECK(first.runs == 2);
  CHECK(std::exp(first.log_ns) == Approx(8e6));
  CHECK(first.log_deviation == 0.5);
  CHECK(first.transfer_ns == 0);
  CHECK(first.first_extra_ns == 0);
  CHECK_FALSE(first.drifted);
  bucket.flops = 0;  // unknown: as it was
  CHECK(std::exp(model.estimate(bucket, device).log_ns) == Approx(4e6));
  // First runs that were no slower than later ones cost nothing more.
  model.learn_run(bucket, device, 5e6, 0.5);
  CHECK(model.estimate(bucket, device).first_extra_ns == 0);
  CHECK(model.estimate(bucket, device).transfer_ns == 0);  // less than a nanosecond is none
}

TEST_CASE("selector model: a fingerprint is of every name and value of a device's identities", "[selector]") {
  DeviceInfo device = device_of("d");
  device.driver_identity.clear();
  CHECK(fingerprint(device) == "driver 1");
  std::vector<std::string> all;
  const auto take = [&](std::vector<std::pair<std::string, std::string>> of_device,
                        std::vector<std::pair<std::string, std::string>> of_driver,
                        std::vector<std::pair<std::string, std::string>> of_speed) {
    device.device_identity = std::move(of_device);
    device.driver_identity = std::move(of_driver);
    device.speed_identity = std::move(of_speed);
    all.push_back(fingerprint(device));
    REQUIRE(all.back().size() == 18);
    CHECK(all.back().starts_with("driver 1 #"));
    CHECK(all.back().find_first_not_of("0123456789abcdef", 10) == std::string::npos);
    CHECK(all.back() == fingerprint(device));
  };
  take({}, {{"ab", "c"}}, {});
  take({}, {{"a", "bc"}}, {});
  take({}, {{"ab", "d"}}, {});
  take({{"x", "y"}}, {{"ab", "c"}}, {});
  take({}, {{"ab", "c"}}, {{"x", "z"}});
  std::ranges::sort(all);
  CHECK(std::ranges::adjacent_find(all) == all.end());
}

// By hand: 0.3 for scaling, 0.25 an octave, 0.7 for another family, as orthogonal errors.
TEST_CASE("selector model: one point is scaled by its rate, and is the less certain the farther it is", "[selector]") {
  RunPoint point{1e9, 1e6, std::log(1e6), true};
  const auto at = [&](double flops) { return predict(std::span(&point, 1), flops, 1e6).value(); };
  for (const double factor : {4.0, 0.25}) {
    CHECK(std::exp(at(factor * 1e9).log_ns) == Approx(factor * 1e6));
    CHECK(at(factor * 1e9).log_deviation == Approx(0.5830951894845301));
    CHECK(at(factor * 1e9).shapes == 1);
  }
  CHECK(at(1e9).log_deviation == Approx(0.3));
  point.same_family = false;
  CHECK(std::exp(at(4e9).log_ns) == Approx(4e6));
  CHECK(at(4e9).log_deviation == Approx(0.9110433579144299));
  CHECK_FALSE(predict({}, 1e9, 1e6));
}

TEST_CASE("selector model: five points of the family are enough to do without the others", "[selector]") {
  std::vector<RunPoint> points;
  const auto add = [&](bool same_family) {
    const double flops = 1e9 * static_cast<double>(points.size() + 1);
    points.push_back({flops, 1e6, std::log(flops / 1000), same_family});
  };
  for (int i = 0; i < 3; ++i) add(false);
  for (int i = 0; i < 4; ++i) add(true);
  CHECK(predict(points, 5e9, 1e6)->shapes == 7);
  add(true);
  CHECK(predict(points, 5e9, 1e6)->shapes == 5);
  CHECK(std::exp(predict(points, 5e9, 1e6)->log_ns) == Approx(5e6).epsilon(1e-6));
}

TEST_CASE("selector model: a device is hopeless above ten times the lowest cost", "[selector]") {
  Prospect prospect;
  CHECK(prospect.hopeless(1e6));  // nothing is known of it
  prospect.run.evidence = Evidence::own;
  prospect.run.log_ns = std::log(9.9e6);
  CHECK_FALSE(prospect.hopeless(1e6));
  prospect.run.log_ns = std::log(10.1e6);
  CHECK(prospect.hopeless(1e6));
  CHECK_FALSE(prospect.hopeless(2e6));
  // What it waits for counts as well, by the runs that share it.
  prospect.run.log_ns = std::log(9e6);
  prospect.queue_ns = 0.8e6;
  CHECK_FALSE(prospect.hopeless(1e6));
  prospect.build_ns = 0.4e6;
  CHECK(prospect.hopeless(1e6));
  prospect.uses = 4;
  CHECK_FALSE(prospect.hopeless(1e6));
  // Ten times the lowest is not above it, and nothing is above a lowest cost that is not known. e^0 is exactly 1.
  Prospect ten;
  ten.run.evidence = Evidence::own;
  ten.queue_ns = 9;
  CHECK(ten.cost_ns() == 10);
  CHECK_FALSE(ten.hopeless(1));
  ten.queue_ns = 9.001;
  CHECK(ten.hopeless(1));
  CHECK_FALSE(Prospect().hopeless(std::numeric_limits<double>::infinity()));
}

TEST_CASE("selector model: another driver is another device", "[selector]") {
  PerformanceModel model(0.1);
  DeviceInfo device = device_of("d");
  const ShapeBucket bucket = conv(64, 56);
  model.learn_run(bucket, device, 8e6, 0);
  device.driver = "driver 2";
  CHECK(model.estimate(bucket, device).evidence == Evidence::nothing);
}

TEST_CASE("selector model: other identities under the same words are another device", "[selector]") {
  PerformanceModel model(0.1);
  DeviceInfo device = device_of("d");
  const ShapeBucket bucket = conv(64, 56);
  model.learn_run(bucket, device, 8e6, 0);
  CHECK(model.estimate(bucket, device).known());
  device.driver_identity.emplace_back("threads", "1");
  CHECK(model.estimate(bucket, device).evidence == Evidence::nothing);
}

TEST_CASE("selector model: a device that is not open yet is known by its last driver", "[selector]") {
  PerformanceModel model(0.1);
  const ShapeBucket bucket = conv(64, 56);
  DeviceInfo before = device_of("d");
  before.driver = "", before.driver_identity.clear();
  model.count_look(bucket, before);
  CHECK(model.looks(bucket, before) == 1);

  const DeviceInfo open = device_of("d");
  model.settle_driver(bucket, open);
  CHECK(model.looks(bucket, open) == 1);  // the look was its own
  CHECK(model.looks(bucket, before) == 1);
  model.learn_run(bucket, open, 8e6, 0);
  CHECK(model.estimate(bucket, before).evidence == Evidence::own);
}

TEST_CASE("selector model: of several drivers the last one that was measured stands for a device that is not open yet",
          "[selector]") {
  const ShapeBucket bucket = conv(64, 56);
  const auto with_driver = [](int number) {
    DeviceInfo device = device_of("d");
    device.driver = "driver " + std::to_string(number);
    return device;
  };
  DeviceInfo unopened = device_of("d");
  unopened.driver = "", unopened.driver_identity.clear();
  std::vector<int> order{1, 2, 3};  // in which they were of use; the model keeps them by their names
  do {
    CAPTURE(order);
    PerformanceModel looked(0.1), measured(0.1);
    for (const int number : order) {
      for (int i = 0; i < number; ++i) looked.count_look(bucket, with_driver(number));
      measured.learn_run(bucket, with_driver(number), 1e6 * number, 0);
    }
    CHECK(looked.looks(bucket, unopened) == static_cast<std::uint32_t>(order.back()));
    CHECK(std::exp(measured.estimate(bucket, unopened).log_ns) == Approx(1e6 * order.back()));
    for (const int number : {0, 4}) measured.count_look(bucket, with_driver(number));  // later, but nothing ran
    CHECK(std::exp(measured.estimate(bucket, unopened).log_ns) == Approx(1e6 * order.back()));
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("selector model: the driver that a device names before it is open stands for it where it was measured",
          "[selector]") {
  const ShapeBucket bucket = conv(64, 56);
  DeviceInfo named = device_of("d");
  named.driver = "m", named.driver_identity.clear();
  PerformanceModel model(0.1);
  model.learn_run(bucket, named, 5e6, 0);
  for (const char* other : {"a", "z"}) {  // before it and behind it, and later
    DeviceInfo opened = device_of("d");
    opened.driver = other;
    model.learn_run(bucket, opened, 9e6, 0);
  }
  CHECK(std::exp(model.estimate(bucket, named).log_ns) == Approx(5e6));
  DeviceInfo unnamed = named;
  unnamed.driver = "";
  CHECK(std::exp(model.estimate(bucket, unnamed).log_ns) == Approx(9e6));
}

TEST_CASE("selector model: an opened device takes over the looks of its shape alone", "[selector]") {
  PerformanceModel model(0.1);
  const ShapeBucket small = conv(64, 56), large = conv(256, 112);
  REQUIRE(small.shape != large.shape);
  DeviceInfo unopened = device_of("d"), other = device_of("e");
  unopened.driver = "", unopened.driver_identity.clear();
  other.driver = "", other.driver_identity.clear();
  DeviceInfo older = device_of("d"), oldest = device_of("d");
  older.driver_identity.emplace_back("release", "1");
  oldest.driver_identity.emplace_back("release", "0");
  model.count_look(small, unopened);
  model.count_look(large, unopened);
  model.count_look(small, other);
  model.count_look(small, older);
  model.learn_run(small, oldest, 8e6, 0);
  model.count_look(small, oldest);

  const DeviceInfo open = device_of("d");
  model.settle_driver(small, open);
  CHECK(model.looks(small, open) == 2);  // before it was open, and under a driver with which nothing ran
  CHECK(model.looks(small, older) == 0);
  CHECK(model.looks(small, oldest) == 1);  // it ran with that driver
  CHECK(model.looks(large, open) == 0);
  model.settle_driver(large, open);
  CHECK(model.looks(large, open) == 1);
  CHECK(model.looks(small, open) == 2);
  CHECK(model.looks(small, other) == 1);
}

TEST_CASE("selector model: bounded, the least recently used go first", "[selector]") {
  PerformanceModel model(0.1);
  const ShapeBucket bucket = conv(64, 56);
  model.learn_run(bucket, device_of("kept"), 1e6, 0);
  model.learn_run(bucket, device_of("old"), 1e6, 0);
  for (std::size_t i = 0; i < PerformanceModel::most_arms - 2; ++i) {
    model.learn_run(bucket, device_of("d" + std::to_string(i)), 1e6, 0);
  }
  model.learn_run(bucket, device_of("kept"), 1e6, 0);
  CHECK(model.arms().size() == PerformanceModel::most_arms);
  model.learn_run(bucket, device_of("new"), 1e6, 0);
  CHECK(model.arms().size() == PerformanceModel::most_arms);
  CHECK(model.estimate(bucket, device_of("kept")).known());
  CHECK(model.estimate(bucket, device_of("new")).known());
  CHECK_FALSE(model.estimate(bucket, device_of("old")).known());
}

TEST_CASE("selector model: where all are of one age, the one that is learned stays", "[selector]") {
  PerformanceModel model(0.1);
  std::map<ArmKey, Arm> arms;
  for (std::size_t i = 0; i < PerformanceModel::most_arms; ++i) {
    arms[{"gemm", "other", "driver", std::to_string(i)}].used = 7;
  }
  model.replace(std::move(arms));
  const ShapeBucket bucket = conv(64, 56);  // its key is before the others
  model.learn_run(bucket, device_of("a"), 1e6, 0);
  CHECK(model.arms().size() == PerformanceModel::most_arms);
  CHECK(model.estimate(bucket, device_of("a")).runs == 1);
}
