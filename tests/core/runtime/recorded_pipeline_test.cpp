// Pipelines that are recorded and replayed, and what the selector learns of pipelines.
#include "core/runtime/pipeline_chain.hpp"
#include "core/runtime/told_selector.hpp"
#include "support/told_trace.hpp"

#include <kiln/stop_scope.hpp>

#include <algorithm>
#include <atomic>
#include <thread>
#include <tuple>

using namespace kiln;
using namespace kiln::test;
using Catch::Matchers::Contains;

TEST_CASE("pipeline: it is recorded once and replayed with what its tensors hold then") {
  RuntimeFixture fixture;
  ToldTrace trace;
  fixture.trace = &trace;
  Runtime& runtime = fixture.runtime();
  Chain chain;
  PipelineRequest request = chain.on_beta();
  request.check = PipelineCheck::final;
  request.measure_steps = GENERATE(false, true);
  auto recorded = runtime.record(request);
  REQUIRE(recorded);
  request.pipeline = {};  // the recording keeps its own
  CHECK((*recorded)->jobs() == 4);
  CHECK((*recorded)->device().id == "beta");
  CHECK((*recorded)->selected_because() == "requested");
  CHECK(fixture.controls("beta").submits == 0);
  const auto builds = runtime.counters().builds.load();
  for (int replay = 0; replay < 3; ++replay) {
    for (float& value : chain.input->as<float>()) value += 0.125f;
    std::ranges::fill(chain.output->as<float>(), 7.0f);
    const RunReport report = runtime.replay(**recorded);
    REQUIRE(report.status.text() == "ok");
    CHECK(report.verified == true);
    CHECK(report.name == "chain");
    CHECK(report.op == "pipeline");
    CHECK(report.runs == 1);
    CHECK(report.tier == (replay == 0 ? Tier::built : Tier::memory));
    CHECK((report.build_ns != 0) == (replay == 0));
    CHECK(report.median.wall_ns > 0);
    CHECK(report.intermediate_bytes == 2 * 108 * sizeof(float));
    REQUIRE(report.steps.size() == 4);
    CHECK(report.steps[0].tier == (replay == 0 ? Tier::built : Tier::memory));
    CHECK((report.steps[3].device_ns != 0) == request.measure_steps);
    CHECK(values_in(*chain.output) == by_jobs(runtime, chain.pipeline, chain.input, {0, 1, 2, 3}));
  }
  CHECK(runtime.counters().builds == builds);
  const auto spans =
      std::ranges::count_if(trace.events(), [](const ToldEvent& event) { return event.name == "chain"; });
  CHECK(spans == 4);  // the recording, and three replays
}

TEST_CASE("pipeline: a recorded one that changes a tensor goes on from it, and changes nothing if it fails") {
  RuntimeFixture fixture;
  Runtime& runtime = fixture.runtime();
  Chain chain;
  chain.pipeline.tensors = {{"x", DType::f32, square, Access::read_write, chain.input}, intermediate("a")};
  chain.pipeline.steps = {conv("1", "x", "a"), conv("2", "a", "x")};
  PipelineRequest request = chain.on_beta();
  request.check = GENERATE(PipelineCheck::none, PipelineCheck::steps);
  const auto recorded = runtime.record(request).value();
  for (int replay = 0; replay < 2; ++replay) {
    const auto before = HostTensor::create(DType::f32, square).value();
    std::ranges::copy(chain.input->as<float>(), before->as<float>().begin());
    REQUIRE(runtime.replay(*recorded).status.text() == "ok");
    CHECK(values_in(*chain.input) == by_jobs(runtime, chain.pipeline, before, {0, 1}));
  }
  const auto given = values_in(*chain.input);
  fixture.controls("beta").lost = true;
  const RunReport lost = runtime.replay(*recorded);
  CHECK(lost.status.code == StatusCode::device_lost);
  REQUIRE(lost.notes.size() == 1);
  CHECK_THAT(lost.notes[0], Contains("beta was lost (set aside"));
  CHECK(values_in(*chain.input) == given);
}

TEST_CASE("pipeline: a failed recorded pipeline leaves its inputs and results unchanged") {
  RuntimeFixture fixture;
  fixture.options("beta").info.roof_gflops = 1e-9;  // whatever was measured is an error, after the run
  Chain chain;
  chain.pipeline.tensors = {{"x", DType::f32, square, Access::read_write, chain.input},
                            {"y", DType::f32, square, Access::read_write, chain.output}};
  chain.pipeline.steps = {conv("1", "x", "y"), conv("2", "y", "x")};
  std::ranges::fill(chain.output->as<float>(), 7.0f);
  const auto given = values_in(*chain.input);
  const auto recorded = fixture.runtime().record(chain.on_beta()).value();
  const RunReport failed = fixture.runtime().replay(*recorded);
  CHECK(failed.status.code == StatusCode::internal);
  CHECK_THAT(failed.status.message, Contains("beta, whose roof is"));
  CHECK(fixture.controls("beta").runs == 1);
  CHECK(values_in(*chain.input) == given);
  CHECK(values_in(*chain.output) == std::vector<float>(108, 7.0f));
}

TEST_CASE("pipeline: replays that fail leave the results as they were, and after three the device is set aside") {
  RuntimeFixture fixture;
  fixture.config.device.prefer = "beta";
  Runtime& runtime = fixture.runtime();
  support::FixtureControls& beta = fixture.controls("beta");
  Chain chain;
  PipelineRequest request = chain.on_beta();
  request.device.clear();
  request.check = PipelineCheck::final;  // fills the result with NaN before each run
  const auto recorded = runtime.record(request).value();
  const bool wrong = GENERATE(false, true);
  beta.fail_at = beta.submits + 1;
  CHECK(runtime.replay(*recorded).status.code == StatusCode::internal);
  CHECK(runtime.replay(*recorded).status.text() == "ok");  // which ends the row of failures
  for (int replay = 0; replay < 3; ++replay) {
    std::ranges::fill(chain.output->as<float>(), 7.0f);
    (wrong ? beta.wrong_at : beta.fail_at) = beta.submits + 1;
    const RunReport failed = runtime.replay(*recorded);
    CHECK(failed.status.code == (wrong ? StatusCode::wrong_result : StatusCode::internal));
    CHECK((values_in(*chain.output) == std::vector<float>(108, 7.0f)) == !wrong);  // what is wrong can be looked at
  }
  const RunReport after = runtime.run(request);
  CHECK(after.status.text() == "ok");
  CHECK(after.device.id == "alpha");
}

TEST_CASE("pipeline: a replay that is late changes nothing while the device is at it") {
  RuntimeFixture fixture;
  Runtime& runtime = fixture.runtime();
  support::FixtureControls& beta = fixture.controls("beta");
  Chain chain;
  PipelineRequest request = chain.on_beta();
  request.check = PipelineCheck::final;
  const auto recorded = runtime.record(request).value();
  REQUIRE(runtime.replay(*recorded).status.text() == "ok");
  const auto want = values_in(*chain.output);
  beta.run.close();
  CHECK(runtime.replay(*recorded, {std::chrono::seconds(1), nullptr}).status.code == StatusCode::timeout);
  std::ranges::fill(chain.output->as<float>(), 7.0f);
  const RunReport busy = runtime.replay(*recorded);
  CHECK(busy.status.code == StatusCode::invalid_argument);
  CHECK_THAT(busy.status.message, Contains("still in flight"));
  CHECK(values_in(*chain.output) == std::vector<float>(108, 7.0f));  // not NaN
  beta.run.open();
  RunReport again = runtime.replay(*recorded);
  for (int i = 0; i < 1000 && again.status.code == StatusCode::invalid_argument; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    again = runtime.replay(*recorded);
  }
  CHECK(again.status.text() == "ok");
  CHECK(values_in(*chain.output) == want);
}

TEST_CASE("pipeline: recording it is stopped after the program that is being built") {
  RuntimeFixture fixture;
  Runtime& runtime = fixture.runtime();
  support::FixtureControls& beta = fixture.controls("beta");
  const Chain chain;
  std::atomic<bool> stop{false};
  beta.build.close();
  std::thread stopping([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    stop = true;
    beta.build.open();
  });
  const StopScope scope(&stop);
  const auto recorded = runtime.record(chain.on_beta());
  stopping.join();
  REQUIRE_FALSE(recorded);
  CHECK(recorded.error().code == StatusCode::cancelled);
}

TEST_CASE("pipeline: what cannot be recorded is refused") {
  RuntimeFixture fixture;
  const Chain chain;
  const auto error_of = [&](PipelineRequest request) {
    const auto recorded = fixture.runtime().record(std::move(request));
    REQUIRE_FALSE(recorded);
    CHECK(recorded.error().code == StatusCode::invalid_argument);
    return recorded.error().message;
  };
  PipelineRequest request = chain.on_beta();
  request.repeat = 2;
  CHECK_THAT(error_of(request), Contains("pipeline 'chain': 2 repeats given"));
  request = chain.on_beta();
  request.progress = [](std::uint32_t) { return true; };
  CHECK_THAT(error_of(request), Contains("pipeline 'chain': a progress callback given"));
  request = chain.on_beta();
  request.timeout = std::chrono::seconds(1);
  CHECK_THAT(error_of(request), Contains("a timeout or a stop flag given, expected none"));
  request = chain.on_beta();
  request.pipeline.tensors[4].host = nullptr;
  CHECK_THAT(error_of(request), Contains("tensor 'y' has no host tensor"));
  request = chain.on_beta();
  request.pipeline.steps.clear();
  CHECK_THAT(error_of(request), Contains("has no steps"));
}

TEST_CASE("pipeline: a recorded one is on another device where the first has no memory") {
  RuntimeFixture fixture;
  fixture.config.device.prefer = "alpha";
  fixture.controls("alpha").fail_buffers = true;
  const Chain chain;
  PipelineRequest request;
  request.pipeline = chain.pipeline;
  const auto recorded = fixture.runtime().record(request).value();
  CHECK(recorded->device().id == "beta");
  const RunReport report = fixture.runtime().replay(*recorded);
  CHECK(report.status.text() == "ok");
  REQUIRE_FALSE(report.notes.empty());
  CHECK_THAT(report.notes[0], Contains("alpha cannot serve"));
}

TEST_CASE("pipeline: what the selector has learned of it is explained") {
  RuntimeFixture fixture;
  Chain chain;
  PipelineRequest request = chain.on_beta();
  request.repeat = 4;
  REQUIRE(fixture.runtime().run(request).status.text() == "ok");
  request.device.clear();
  for (PipelineTensor& tensor : request.pipeline.tensors) tensor.host = nullptr;  // its tensors do not matter
  const Explanation explanation = fixture.runtime().explain(request).value();
  CHECK_THAT(explanation.bucket, Catch::Matchers::Matches("pipeline [0-9a-f]{32}"));
  REQUIRE(explanation.candidates.size() == 2);
  for (const CandidateCost& candidate : explanation.candidates) {
    CHECK(candidate.runs == (candidate.device == "beta" ? 3 : 0));  // beside the first run in this process
    CHECK(candidate.cold == (candidate.device != "beta"));
  }
  request.pipeline.steps.clear();
  CHECK_THAT(fixture.runtime().explain(request).error().message, Contains("has no steps"));
}

TEST_CASE("pipeline: the selector chooses for the whole, and learns each of its runs") {
  Told told;
  RuntimeFixture fixture;
  ToldSelector::serve(fixture, told);
  Chain chain;
  PipelineRequest request = chain.on_beta();
  request.device.clear();
  request.repeat = 2;
  request.check = PipelineCheck::final;
  const RunReport report = fixture.runtime().run(request);
  REQUIRE(report.status.text() == "ok");
  CHECK(report.selected_because == "the last");
  REQUIRE(told.selected.size() == 1);
  REQUIRE(told.runs.size() == 2);
  const std::string shape = told.runs[0].work.shape, device = report.device.id;
  CHECK(told.selected[0] == "pipeline " + shape);
  using Run = std::tuple<std::string, std::string, bool, StatusCode>;  // shape, device, first run, status
  const auto told_run = [&](std::size_t at) {
    const ToldRun& run = told.runs.at(at);
    return Run{run.work.shape, run.device, run.measurement.first_run, run.conditions.status.code};
  };
  CHECK(told_run(0) == Run{shape, device, true, StatusCode::ok});
  CHECK(told_run(1) == Run{shape, device, false, StatusCode::ok});
  CHECK(told.runs[0].work.flops == Approx(report.flops));
  CHECK(told.runs[0].work.bytes == Approx(2 * 108 * sizeof(float)));  // what it reads and writes outside
  request.repeat = 1;
  request.device = device;

  const auto recorded = fixture.runtime().record(request).value();
  REQUIRE(fixture.runtime().replay(*recorded).status.text() == "ok");
  REQUIRE(told.runs.size() == 3);
  CHECK(told_run(2) == Run{shape, device, false, StatusCode::ok});

  fixture.controls(device).wrong_at = fixture.controls(device).submits + 1;
  CHECK(fixture.runtime().run(request).status.code == StatusCode::wrong_result);
  REQUIRE(told.runs.size() == 4);
  CHECK(told_run(3) == Run{shape, device, false, StatusCode::wrong_result});

  request.pipeline.steps[3].spec = request.pipeline.steps[0].spec;  // the same work
  REQUIRE(fixture.runtime().run(request).status.text() == "ok");
  CHECK(told.runs[4].work.shape == shape);
  auto& spec = std::get<Conv2dSpec>(request.pipeline.steps[3].spec);
  spec.activation = Activation::relu;  // other work
  REQUIRE(fixture.runtime().run(request).status.text() == "ok");
  CHECK(told.runs[5].work.shape != shape);
  CHECK(told.runs[5].measurement.first_run);
}

TEST_CASE("pipeline: a result that cannot be compared is no failure of the device, and its time is learned") {
  Told told;
  RuntimeFixture fixture;
  ToldSelector::serve(fixture, told);
  Pool2dSpec mean;  // of so many elements that the rounding has no bound
  mean.kind = PoolKind::average;
  mean.c = mean.h = mean.w = 1;
  mean.r = mean.s = 4097;
  mean.pad_y = mean.pad_x = 2048;
  PipelineRequest request;
  request.pipeline.name = "mean";
  request.pipeline.tensors = {{"x", DType::f32, {1, 1, 1, 1}, Access::read, numbers({1, 1, 1, 1}, 1)},
                              {"y", DType::f32, {1, 1, 1, 1}, Access::write, numbers({1, 1, 1, 1}, 0)}};
  request.pipeline.steps.push_back({"1", mean, {{"x", {}}, {"y", {}}}});
  request.device = "beta";
  request.check = PipelineCheck::final;
  const RunReport report = fixture.runtime().run(request);
  CHECK(report.status.code == StatusCode::invalid_argument);
  CHECK_THAT(report.status.message, Contains("the rounding errors of the steps may add up to"));
  CHECK_FALSE(report.verified.has_value());
  REQUIRE(told.runs.size() == 1);
  CHECK(told.runs[0].conditions.status.ok());
}

TEST_CASE("pipeline: after a run that failed the next one is the first") {
  Told told;
  RuntimeFixture fixture;
  ToldSelector::serve(fixture, told);
  const Chain chain;
  fixture.controls("beta").fail_at = 1;
  CHECK(fixture.runtime().run(chain.on_beta()).status.code == StatusCode::internal);
  for (int run = 0; run < 2; ++run) REQUIRE(fixture.runtime().run(chain.on_beta()).status.text() == "ok");
  REQUIRE(told.runs.size() == 3);
  CHECK(told.runs[1].measurement.first_run);
  CHECK_FALSE(told.runs[2].measurement.first_run);
}
