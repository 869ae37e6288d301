#include "core/selector/candidates.hpp"

#include "selector/model/performance_model.hpp"

#include <catch2/catch.hpp>

#include <cmath>

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

TEST_CASE("selector average: few samples are not certain", "[selector]") {
  Average one, many;
  one.add(4, 0.1);
  for (int i = 0; i < 100; ++i) many.add(4, 0.1);
  CHECK(Average().mean_deviation(0.1, 0.3) == Approx(0.3));
  CHECK(one.mean_deviation(0.1, 0.3) > 0.1);
  CHECK(many.mean_deviation(0.1, 0.3) < 0.02);
}

TEST_CASE("selector buckets: about the same work of the same family", "[selector]") {
  const ShapeBucket bucket = bucket_of(conv(64, 56));
  CHECK(bucket.operation == "conv2d");
  CHECK(bucket.shape == "3x3 dense direct f32 @28.0");
  CHECK(bucket.flops == Approx(231211008));
  CHECK(bucket_of(conv(64, 57)).shape == bucket.shape);
  CHECK(bucket_of(conv(64, 112)).shape != bucket.shape);
  CHECK(bucket_of(conv(64, 168, 1)).shape != bucket.shape);
  Conv2dSpec depthwise = conv(64, 56);
  depthwise.groups = 64;
  CHECK(bucket_of(depthwise).family == "3x3 depthwise direct f32");
  CHECK(bucket_of(GemmSpec{64, 64, 64}).shape == "full f32 @19.0");
  CHECK(bucket_of(GemmSpec{1, 64, 64}).family == "thin f32");
}

TEST_CASE("selector model: estimates come from the bucket, its neighbours, the roof, in this order", "[selector]") {
  PerformanceModel model(0.1);
  const DeviceInfo device = device_of("d", 100);
  const ShapeBucket middle = bucket_of(conv(64, 56));
  const auto ns_of = [&](const Conv2dSpec& spec) { return std::exp(model.estimate(bucket_of(spec), device).log_ns); };

  CHECK(model.estimate(middle, device).evidence == Evidence::roof);
  CHECK(ns_of(conv(64, 56)) == Approx(2.312e6).epsilon(0.01));
  CHECK(model.estimate(middle, device_of("e")).evidence == Evidence::nothing);

  model.learn_run(middle, device, 8e6);
  CHECK(model.estimate(middle, device).evidence == Evidence::own);
  CHECK(model.estimate(middle, device).runs == 1);
  CHECK(ns_of(conv(64, 56)) == Approx(8e6));
  CHECK(ns_of(conv(64, 57)) == Approx(8e6 * 57 * 57 / 56 / 56));  // scaled within its bucket

  CHECK(model.estimate(bucket_of(conv(64, 72)), device).evidence == Evidence::near);
  CHECK(model.estimate(bucket_of(conv(64, 14)), device).evidence == Evidence::larger);
  CHECK(model.estimate(bucket_of(conv(64, 224)), device).evidence == Evidence::guess);
  CHECK(model.estimate(bucket_of(conv(64, 168, 1)), device).evidence == Evidence::guess);  // another family
  CHECK(ns_of(conv(64, 112)) == Approx(32e6));
  CHECK(model.estimate(bucket_of(conv(64, 224)), device).log_deviation >
        model.estimate(bucket_of(conv(64, 72)), device).log_deviation);
}

TEST_CASE("selector model: another driver is another device", "[selector]") {
  PerformanceModel model(0.1);
  DeviceInfo device = device_of("d");
  const ShapeBucket bucket = bucket_of(conv(64, 56));
  model.learn_run(bucket, device, 8e6);
  device.driver = "driver 2";
  CHECK(model.estimate(bucket, device).evidence == Evidence::nothing);
}

TEST_CASE("selector model: a device that is not open yet is known by its last driver", "[selector]") {
  PerformanceModel model(0.1);
  const ShapeBucket bucket = bucket_of(conv(64, 56));
  DeviceInfo before = device_of("d");
  before.driver = "", before.driver_identity.clear();
  model.count_look(bucket, before);
  CHECK(model.looks(bucket, before) == 1);

  const DeviceInfo open = device_of("d");
  model.settle_driver(bucket, open);
  CHECK(model.looks(bucket, open) == 1);  // the look was its own
  CHECK(model.looks(bucket, before) == 1);
  model.learn_run(bucket, open, 8e6);
  CHECK(model.estimate(bucket, before).evidence == Evidence::own);
}

TEST_CASE("selector model: bounded, the least recently used go first", "[selector]") {
  PerformanceModel model(0.1);
  const ShapeBucket bucket = bucket_of(conv(64, 56));
  model.learn_run(bucket, device_of("kept"), 1e6);
  model.learn_run(bucket, device_of("old"), 1e6);
  for (std::size_t i = 0; i < PerformanceModel::most_arms - 2; ++i) {
    model.learn_run(bucket, device_of("d" + std::to_string(i)), 1e6);
  }
  model.learn_run(bucket, device_of("kept"), 1e6);
  CHECK(model.arms().size() == PerformanceModel::most_arms);
  model.learn_run(bucket, device_of("new"), 1e6);
  CHECK(model.arms().size() == PerformanceModel::most_arms);
  CHECK(model.estimate(bucket, device_of("kept")).known());
  CHECK(model.estimate(bucket, device_of("new")).known());
  CHECK_FALSE(model.estimate(bucket, device_of("old")).known());
}
