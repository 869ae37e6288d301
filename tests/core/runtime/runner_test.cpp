// Statistics of runs, and what a Runner reports of an executor that answers as it is told.
#include "runtime/runner.hpp"

#include "core/runtime/runtime_fixture.hpp"
#include "support/happens.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace kiln;
using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

Measurement with_wall(std::uint64_t wall_ns, std::uint64_t device_ns) {
  Measurement measurement;
  measurement.wall_ns = wall_ns;
  measurement.device_ns = device_ns;
  return measurement;
}

// Answers at once: a wait for work that is not done does not wait.
class ToldExecutor final : public Executor {
 public:
  Result<Fence> submit(Submission) noexcept override { return begin(); }
  Result<Fence> replay(const std::shared_ptr<Recording>&, Deadline) noexcept override { return begin(); }
  Result<Measurement> wait(Fence, Deadline) noexcept override {
    if (!waits.ok()) return waits;
    if (measured.empty()) return Measurement();
    Measurement next = measured.front();
    measured.pop_front();
    return next;
  }
  std::uint64_t backlog_ns(const Device&) const noexcept override { return 0; }
  Status cancel(Fence) noexcept override {
    if (cancels.ok()) waits = cancelled("taken back");
    return cancels;
  }

  Status submits, waits, cancels;  // not ok: the answer
  std::deque<Measurement> measured;
  int begun = 0;

 private:
  Result<Fence> begin() {
    ++begun;
    if (!submits.ok()) return submits;
    return Fence{0, 1};
  }
};

struct RunnerScene {
  Config config;
  ToldExecutor executor;
  ResourceUse resources;
  WorkHistory history;
  JobMetrics metrics;
  Runner runner{config, nullptr, executor, resources, history, metrics};
  DeviceInfo info = support::fixture_info("fixture:0");
  AcquiredPrograms programs;
  RunReport report;  // of the last run()

  RunnerScene() {
    programs.plan.keyed = std::make_shared<const KeyedPlan>(KeyedPlan{std::make_shared<const KernelPlan>(), {}, {}});
  }
  RunOutcome run(const RunRequest& request) {
    Job job(request);
    return run(job);
  }
  RunOutcome run(Job& job) {
    job.report.device = info;
    RunOutcome outcome = runner.run(job, nullptr, Result<AcquiredPrograms>(programs));
    report = job.report;
    return outcome;
  }
  // Whether a run or a replay that fails with the code counts against its device.
  bool counts(bool replayed, StatusCode code, std::chrono::nanoseconds patience = std::chrono::milliseconds(1)) {
    if (replayed) {
      const ReplayOutcome outcome = runner.replay(nullptr, info, Deadline::after(patience), nullptr);
      REQUIRE_FALSE(outcome.measurement);
      CHECK(outcome.measurement.error().code == code);
      return outcome.had_device;
    }
    RunRequest request = small_conv2d();
    request.timeout = patience;
    const RunOutcome outcome = run(request);
    CHECK(outcome.status.code == code);
    return outcome.of_device;
  }
  // The device works on what it was given, and nobody can take it back.
  void hang() {
    executor.waits = timed_out("not finished");
    executor.cancels = unavailable("submitted already");
  }
};

RunRequest unverified_conv2d() {
  RunRequest request = small_conv2d();
  request.verify = false;
  return request;
}

}  // namespace

TEST_CASE("one run is its own median") {
  RunStatistics statistics;
  statistics.add(with_wall(7, 5));
  CHECK(statistics.median().wall_ns == 7);
  CHECK(statistics.wall_min_ns() == 7);
  CHECK(statistics.wall_max_ns() == 7);
}

TEST_CASE("the first run of a program in its process stands apart from the steady ones") {
  RunStatistics statistics;
  Measurement cold = with_wall(1000, 900);
  cold.first_run = true;
  statistics.add(cold);
  REQUIRE(statistics.first());
  CHECK(statistics.first()->wall_ns == 1000);
  CHECK_FALSE(statistics.steady_median());
  for (const std::uint64_t wall_ns : {30, 10, 20}) statistics.add(with_wall(wall_ns, wall_ns));
  REQUIRE(statistics.steady_median());
  CHECK(statistics.steady_median()->wall_ns == 20);
  CHECK_FALSE(statistics.steady_median()->first_run);
  CHECK(statistics.first()->wall_ns == 1000);

  RunStatistics later;  // another job of the same program
  later.add(with_wall(7, 5));
  CHECK_FALSE(later.first());
  CHECK(later.steady_median()->wall_ns == 7);
}

TEST_CASE("the median is taken field by field and is a time that was measured") {
  RunStatistics statistics;
  for (const std::uint64_t run : {3, 1, 2}) {
    Measurement measurement;
    measurement.queue_ns = 10 + run;
    measurement.build_ns = 20 - run;
    measurement.upload_ns = 30 + run * run;
    measurement.device_ns = 50 - run;
    measurement.readback_ns = run == 2 ? 60 : 61 + run;
    measurement.wall_ns = 100 * run;
    statistics.add(measurement);
  }
  const Measurement median = statistics.median();
  CHECK(median.queue_ns == 12);
  CHECK(median.build_ns == 18);
  CHECK(median.upload_ns == 34);
  CHECK(median.device_ns == 48);
  CHECK(median.readback_ns == 62);
  CHECK(median.wall_ns == 200);
  CHECK(statistics.wall_min_ns() == 100);
  CHECK(statistics.wall_max_ns() == 300);
  statistics.add(with_wall(1000, 1000));
  CHECK(statistics.median().wall_ns == 200);  // the lower of the two in the middle
}

TEST_CASE("runner: a job's runs are reported as they were measured, with the build in the first") {
  RunnerScene scene;
  scene.programs.tier = Tier::disk;
  scene.programs.build_ns = 1000;
  for (const std::uint64_t wall_ns : {300, 100, 200}) {
    Measurement measured = with_wall(wall_ns, 50);
    measured.queue_ns = 7;
    measured.build_ns = 5;
    scene.executor.measured.push_back(measured);
  }
  RunRequest request = unverified_conv2d();
  request.repeat = 3;
  const RunOutcome outcome = scene.run(request);
  CHECK(outcome.status.text() == "ok");
  CHECK(outcome.of_device);
  CHECK(scene.report.runs == 3);
  CHECK(scene.report.median.wall_ns == 200);
  CHECK(scene.report.median.build_ns == 5);
  CHECK(scene.report.wall_min_ns == 100);
  CHECK(scene.report.wall_max_ns == 300);
  CHECK(scene.report.first_output_ns > 0);
  REQUIRE(outcome.runs.size() == 3);
  const std::uint64_t walls[] = {300, 100, 200};
  for (std::size_t run = 0; run < 3; ++run) {
    CAPTURE(run);
    const Measurement& measurement = outcome.runs[run].measurement;
    CHECK(measurement.wall_ns == walls[run]);
    CHECK(measurement.queue_ns == 7);
    CHECK(measurement.build_ns == (run == 0 ? 1005 : 5));
    CHECK(measurement.tier == Tier::disk);
    CHECK(measurement.first_run == (run == 0));
    CHECK_FALSE(measurement.contended);
    CHECK_FALSE(measurement.verified.has_value());
    CHECK(outcome.runs[run].conditions.status.ok());
    CHECK(outcome.runs[run].conditions.build_ns == (run == 0 ? 1000u : 0u));
  }
  Exposition exposition;
  scene.metrics.add_to(exposition);
  CHECK_THAT(exposition.take(), Contains("kiln_runtime_run_seconds_count{device=\"fixture:0\",op=\"conv2d\"} 3\n"));
}

TEST_CASE("runner: runs of generic programs are all first ones, and none of the shape's own programs") {
  RunnerScene scene;
  RunRequest request = unverified_conv2d();
  request.repeat = 2;
  scene.programs.generic = true;
  const auto first_runs = [&] {
    const RunOutcome outcome = scene.run(request);
    std::vector<bool> first;
    for (const FinishedRun& run : outcome.runs) first.push_back(run.measurement.first_run);
    return first;
  };
  CHECK(first_runs() == std::vector<bool>{true, true});
  scene.programs.generic = false;
  CHECK(first_runs() == std::vector<bool>{true, false});
  CHECK(first_runs() == std::vector<bool>{false, false});
  scene.executor.waits = internal_error("failed");
  request.repeat = 1;
  CHECK(scene.run(request).status.code == StatusCode::internal);
  scene.executor.waits = {};
  CHECK(first_runs() == std::vector<bool>{false});  // a later failure does not undo the first run
}

TEST_CASE("runner: progress is told after each run and can end the job before the last one") {
  RunnerScene scene;
  RunRequest request = unverified_conv2d();
  request.repeat = 3;
  std::uint32_t last = 3;
  std::vector<std::uint32_t> told;
  request.progress = [&](std::uint32_t finished) {
    told.push_back(finished);
    return finished < last;
  };
  CHECK(scene.run(request).status.text() == "ok");  // there was no other run to leave out
  CHECK(told == std::vector<std::uint32_t>{1, 2, 3});
  CHECK(scene.report.runs == 3);
  last = 2;
  told.clear();
  const RunOutcome stopped = scene.run(request);
  CHECK(stopped.status.text() == "cancelled: stopped on request after 2 runs");
  CHECK(told == std::vector<std::uint32_t>{1, 2});
  CHECK(scene.report.runs == 2);

  std::atomic<bool> stop{true};
  request.stop = &stop;
  const int begun = scene.executor.begun;
  CHECK(scene.run(request).status.text() == "cancelled: stopped on request after 0 runs");
  CHECK(scene.executor.begun == begun);
}

TEST_CASE("runner: a job asks once whether it may run, whichever devices run it") {
  RunnerScene scene;
  RunRequest request = unverified_conv2d();
  int asked = 0;
  bool may = false;
  request.may_run = [&] {
    ++asked;
    return may;
  };
  const RunOutcome refused = scene.run(request);
  CHECK(refused.status.text() == "cancelled: stopped on request before the first run");
  CHECK_FALSE(refused.of_device);
  CHECK(scene.executor.begun == 0);
  may = true;
  asked = 0;
  Job job(request);
  CHECK(scene.run(job).status.text() == "ok");
  CHECK(scene.run(job).status.text() == "ok");
  CHECK(asked == 1);
}

TEST_CASE("runner: without programs nothing runs, and a wait for a build is not the device's failure") {
  RunnerScene scene;
  const RunRequest request = unverified_conv2d();
  for (const Status& why : {unavailable("no memory"), timed_out("another thread builds it")}) {
    Job job(request);
    const RunOutcome outcome = scene.runner.run(job, nullptr, Result<AcquiredPrograms>(why));
    CHECK(outcome.status.text() == why.text());
    CHECK(outcome.of_device == (why.code != StatusCode::timeout));
    CHECK(outcome.runs.empty());
  }
  CHECK(scene.executor.begun == 0);
}

TEST_CASE("runner: a failure counts against its device unless others kept the job from it") {
  const bool replayed = GENERATE(false, true);
  CAPTURE(replayed);
  RunnerScene scene;
  SECTION("the device fails") {
    scene.executor.waits = internal_error("failed");
    CHECK(scene.counts(replayed, StatusCode::internal));
    scene.executor.waits = device_lost("gone");
    CHECK(scene.counts(replayed, StatusCode::device_lost));
  }
  SECTION("the executor refuses") {
    scene.executor.submits = internal_error("refused");
    CHECK(scene.counts(replayed, StatusCode::internal));
  }
  SECTION("no slot becomes free") {
    scene.executor.submits = timed_out("no slot");
    CHECK_FALSE(scene.counts(replayed, StatusCode::timeout));
    scene.executor.submits = cancelled("no slot");
    CHECK_FALSE(scene.counts(replayed, StatusCode::cancelled));
  }
  SECTION("it waits behind others on the device, and is taken back") {
    scene.executor.waits = timed_out("not begun");
    CHECK_FALSE(scene.counts(replayed, StatusCode::timeout));
  }
  SECTION("the device does not finish it") {
    scene.hang();
    CHECK(scene.counts(replayed, StatusCode::timeout));
    CHECK(scene.counts(replayed, StatusCode::timeout, std::chrono::nanoseconds(0)));
  }
  SECTION("no slot becomes free, because the device does not finish what is late") {
    scene.hang();
    CHECK(scene.counts(replayed, StatusCode::timeout));
    scene.executor.submits = timed_out("no slot");
    CHECK(scene.counts(replayed, StatusCode::timeout));
    scene.info.id = "fixture:1";  // another device
    CHECK_FALSE(scene.counts(replayed, StatusCode::timeout));
    scene.info.id = "fixture:0";
    if (replayed) {
      scene.executor.submits = cancelled("no slot");
      CHECK_FALSE(scene.counts(replayed, StatusCode::cancelled));
      scene.executor.submits = timed_out("no slot");
    }
    scene.executor.waits = {};  // it has finished
    CHECK_FALSE(scene.counts(replayed, StatusCode::timeout));
  }
}

TEST_CASE("runner: a timeout after a wait for its turn of most of the time is not the device's failure") {
  const bool replayed = GENERATE(false, true);
  CAPTURE(replayed);
  RunnerScene scene;
  scene.hang();
  scene.info.shared_resource = "cores";
  DeviceInfo other = support::fixture_info("other");
  other.shared_resource = "cores";
  auto holder = scene.resources.begin_turn(other, Deadline::never(), nullptr);
  REQUIRE(holder);
  const auto patience = std::chrono::milliseconds(400);
  std::atomic<bool> is_over{false};
  std::jthread releasing([&] {
    // Whoever comes after the one that waits does not get a turn.
    (void)happens([&] {
      return is_over || !scene.resources.begin_turn(other, Deadline::after(std::chrono::milliseconds(1)), nullptr);
    });
    std::this_thread::sleep_for(patience * 3 / 4);
    holder->end();
  });
  const bool counted = scene.counts(replayed, StatusCode::timeout, patience);
  is_over = true;
  releasing.join();
  CHECK_FALSE(counted);
}

TEST_CASE("runner: what a job changes in place can be put back, and nothing else is") {
  UserKernelSpec kernel;
  kernel.path = "own.cl";
  kernel.bindings = {{Access::read, 16}, {Access::read_write, 16}, {Access::write, 16}};  // the last one in part
  RunRequest request;
  request.spec = kernel;
  for (int i = 0; i < 3; ++i) {
    request.tensors.push_back({HostTensor::create(DType::f32, {4}).value(), nullptr});
    for (float& value : request.tensors.back().host->as<float>()) value = 1;
  }
  const InoutSnapshot before(request);
  for (const TensorArgument& tensor : request.tensors) tensor.host->as<float>()[2] = 7;
  before.restore();
  CHECK(request.tensors[0].host->as<float>()[2] == 7);
  CHECK(request.tensors[1].host->as<float>()[2] == 1);
  CHECK(request.tensors[2].host->as<float>()[2] == 1);
}

TEST_CASE("runner: the result of a comparison stays when a later one is better") {
  RunnerScene scene;
  UserKernelSpec kernel;
  kernel.path = "own.cl";
  kernel.bindings = {{Access::read_write, 64}};
  const auto found = HostTensor::create(DType::f32, {4, 4}).value();
  const auto expected = HostTensor::create(DType::f32, {4, 4}).value();
  for (float& value : found->as<float>()) value = 8;
  for (float& value : expected->as<float>()) value = 8;
  RunRequest request;
  request.name = "own";
  request.spec = kernel;
  request.tensors = {{found, nullptr}};
  RunReport report;
  report.device = scene.info;

  CHECK(scene.runner.compare(request, report).ok());  // there is nothing to compare with
  CHECK_FALSE(report.verified.has_value());
  CHECK_FALSE(report.worst.has_value());

  request.expected = {{expected, Tolerance{0.5, 0.0625}, "y.npy"}};
  found->as<float>()[9] = 8.25f;
  CHECK(scene.runner.compare(request, report).text() == "ok");
  CHECK(report.verified == true);
  CHECK(report.compared_elements == 16);
  CHECK(report.wrong_elements == 0);
  CHECK(report.error_bound == 0.0625);
  CHECK(report.max_rel_error == 0);
  REQUIRE(report.worst);
  CHECK(report.worst->output == "y.npy");
  CHECK(report.worst->index == Shape{2, 1});

  found->as<float>()[3] = 10;
  CHECK(scene.runner.compare(request, report).text() ==
        "wrong_result: fixture:0: 1 of 16 elements is wrong; worst in y.npy at [0, 3]: found 10, expected 8, allowed "
        "error 1");
  CHECK(report.verified == false);
  CHECK(report.wrong_elements == 1);
  CHECK(report.max_rel_error == 0.1875);  // beyond the absolute tolerance
  REQUIRE(report.worst);
  CHECK(report.worst->index == Shape{0, 3});

  found->as<float>()[9] = 12;  // a second failure: the first one is told
  CHECK(scene.runner.compare(request, report).code == StatusCode::wrong_result);
  CHECK(report.wrong_elements == 1);
  CHECK(report.worst->index == Shape{0, 3});
  CHECK(report.max_rel_error == 0.4375);

  for (float& value : found->as<float>()) value = 8;
  CHECK(scene.runner.compare(request, report).text() == "ok");
  CHECK(report.verified == false);
  CHECK(report.wrong_elements == 1);
  CHECK(report.max_rel_error == 0.4375);

  request.expected[0].tensor = HostTensor::create(DType::f32, {16}).value();
  const Status other_shape = scene.runner.compare(request, report);
  CHECK(other_shape.code == StatusCode::invalid_argument);
  CHECK_THAT(other_shape.message, Contains("the output could not be compared: y.npy"));
}
