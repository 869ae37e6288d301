#include "selector/sample_filter.hpp"

#include "core/selector/candidates.hpp"

#include <catch2/catch.hpp>

using namespace kiln;
using namespace kiln::test;
using namespace kiln::selector;

TEST_CASE("sample filter: the limit is the roof, and beyond it what an algorithm may leave out", "[selector]") {
  const DeviceInfo device = device_of("one", 1000), unknown = device_of("two");
  Conv2dSpec spec = conv(64, 56, 1);
  CHECK(rate_limit(effort_of(spec), device) == 1000);
  CHECK(rate_limit(effort_of(GemmSpec{8, 8, 8}), device) == 1000);
  CHECK(rate_limit(effort_of(spec), unknown) == 0);
  spec.accuracy = Accuracy::winograd;  // of 1x1 kernels there is none
  CHECK(rate_limit(effort_of(spec), device) == 1000);
  spec.r = spec.s = 3;
  CHECK(rate_limit(effort_of(spec), device) == 4000);
  spec.stride_y = 2;
  CHECK(rate_limit(effort_of(spec), device) == 1000);
}

TEST_CASE("sample filter: sums over the padding need not be done", "[selector]") {
  const DeviceInfo device = device_of("one", 1000);
  Conv2dSpec spec = conv(8, 4, 3);  // on each axis 10 of 12 taps lie inside
  CHECK(rate_limit(effort_of(spec), device) == Approx(1000 * 1.44));
  spec = conv(8, 33, 3);
  spec.dilation_y = spec.dilation_x = spec.pad_y = spec.pad_x = 24;  // 33 + 9 + 9 of 99
  CHECK(rate_limit(effort_of(spec), device) == Approx(1000 * (99.0 / 51) * (99.0 / 51)));
  spec = conv(8, 7, 3);
  spec.stride_y = spec.stride_x = 2;  // outputs at -1, 1, 3, 5: one tap of twelve is outside on each side
  CHECK(rate_limit(effort_of(spec), device) == Approx(1000 * 1.44));
  spec = conv(8, 1, 3);
  CHECK(rate_limit(effort_of(spec), device) == Approx(9000));
}

TEST_CASE("sample filter: a rate is of the shorter of the run's own time and the device's", "[selector]") {
  const KernelSpec spec = GemmSpec{100, 100, 50};  // 1 MFLOP
  Measurement run = run_of(2);
  CHECK(rate_of(effort_of(spec), run) == Approx(0.5));
  run.queue_ns = 1'000'000;
  CHECK(rate_of(effort_of(spec), run) == Approx(1));
  run.device_ns = 100'000;
  CHECK(rate_of(effort_of(spec), run) == Approx(10));
  CHECK(rate_of(effort_of(spec), {}) == 0);
  run.batch = 4;  // of jobs that may be far smaller
  CHECK(rate_of(effort_of(spec), run) == Approx(10));
  CHECK(is_above_roof(spec, device_of("one", 9.9), run));
  CHECK_FALSE(is_above_roof(spec, device_of("one", 10.1), run));
  CHECK_FALSE(is_above_roof(spec, device_of("one"), run));
  run.device_ns = 4'000'000;  // it includes what others did on the device
  CHECK(rate_of(effort_of(spec), run) == Approx(1));
  run.queue_ns = run.wall_ns;  // the device's time is the only one
  CHECK(rate_of(effort_of(spec), run) == Approx(0.25));
}

TEST_CASE("sample filter: jobs of a batch share the time that they have in common", "[selector]") {
  Measurement run = run_of(10);
  run.queue_ns = 2'000'000;
  CHECK(service_ns(run) == Approx(8e6));
  run.upload_ns = 1'000'000;
  run.readback_ns = 3'000'000;
  run.batch = 4;
  CHECK(service_ns(run) == Approx(1e6 + 3e6 + 4e6 / 4));
  run.queue_ns = run.wall_ns;
  CHECK(service_ns(run) == 0);
}

TEST_CASE("sample filter: a time above the roof is an error, with both rates", "[selector]") {
  const Effort effort{1e6};  // 1 MFLOP
  Measurement run = run_of(0.5);
  CHECK(check_roof(effort, device_of("one", 2), run).ok());  // exactly the roof
  CHECK(check_roof(effort, device_of("one"), run).ok());     // it has none
  CHECK(check_roof(effort, device_of("one", 1.5), run).text() ==
        "internal: measured 2.000000 GFLOP/s on one, whose roof is 1.500000 GFLOP/s: the time is invalid");
  CHECK(check_roof({1e6, 4}, device_of("one", 0.5), run).ok());
}

TEST_CASE("sample filter: a spec is above the roof where what it may save is not enough", "[selector]") {
  Conv2dSpec spec = conv(64, 56);
  const double gflop = flops(spec) / 1e9;
  const Measurement second = run_of(1000);
  spec.accuracy = Accuracy::winograd;  // four times, and sums over the padding
  const double saving = effort_of(spec).saving;
  CHECK(saving > 4);
  CHECK_FALSE(is_above_roof(spec, device_of("one", gflop / saving * 1.01), second));
  CHECK(is_above_roof(spec, device_of("one", gflop / saving * 0.99), second));
  CHECK_FALSE(is_above_roof(spec, device_of("one", gflop), second));
}

TEST_CASE("sample filter: the first reason that applies is told", "[selector]") {
  ShapeBucket work;
  work.flops = 1e6;
  const DeviceInfo device = device_of("one", 2);  // 0.5 ms at the roof
  Measurement run = run_of(1);
  run.prepared = run.first_run = true;
  run.verified = false;
  RunConditions conditions;
  conditions.contended = true;
  conditions.status = timed_out("late");
  const auto found = [&] { return judge(work, device, run, conditions); };
  CHECK(found() == Unfit::timed_out);
  conditions.status = internal_error("broken");
  CHECK(found() == Unfit::wrong_result);
  run.verified = true;
  CHECK(found() == Unfit::faulted);
  conditions.status = {};
  run.wall_ns = 499;
  CHECK(found() == Unfit::too_short);
  run.wall_ns = 500;
  CHECK(found() == Unfit::above_roof);
  run.wall_ns = 499'999;
  CHECK(found() == Unfit::above_roof);
  run.wall_ns = 500'000;  // the roof itself
  CHECK(found() == Unfit::contended);
  conditions.contended = false;
  CHECK(found() == Unfit::first_run);
  run.first_run = false;
  CHECK(found() == Unfit::prepared);
  run.prepared = false;
  CHECK(found() == Unfit::fit);
  run.verified.reset();
  CHECK(found() == Unfit::fit);
  work.saving = 2;
  run.wall_ns = 250'000;
  CHECK(found() == Unfit::fit);
}

TEST_CASE("sample filter: each reason has a name", "[selector]") {
  const std::pair<Unfit, std::string> names[] = {{Unfit::fit, "fit"},
                                                 {Unfit::first_run, "first_run"},
                                                 {Unfit::prepared, "prepared"},
                                                 {Unfit::contended, "contended"},
                                                 {Unfit::timed_out, "timed_out"},
                                                 {Unfit::faulted, "faulted"},
                                                 {Unfit::wrong_result, "wrong_result"},
                                                 {Unfit::above_roof, "above_roof"},
                                                 {Unfit::too_short, "too_short"},
                                                 {static_cast<Unfit>(200), "invalid"}};
  for (const auto& [unfit, name] : names) CHECK(to_string(unfit) == name);
}
