// Pipelines: checks, loops, memory of intermediates, and runs on fixture devices.
#include "core/runtime/runtime_fixture.hpp"
#include "support/told_trace.hpp"

#include <kiln/device_selector.hpp>
#include <kiln/pipeline.hpp>
#include <kiln/stop_scope.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <tuple>

using namespace kiln;
using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

const Shape square{1, 3, 6, 6};

std::shared_ptr<HostTensor> numbers(const Shape& shape, float first) {
  auto tensor = HostTensor::create(DType::f32, shape).value();
  float next = first;
  for (float& value : tensor->as<float>()) {
    value = next;
    next = next > 1 ? next - 1.9f : next + 0.37f;
  }
  return tensor;
}

PipelineTensor intermediate(const std::string& name, const Shape& shape = square) { return {name, DType::f32, shape}; }

// A convolution 3 → 3 of one size.
PipelineStep conv(const std::string& name, const std::string& from, const std::string& to, float weight = 0.1f) {
  Conv2dSpec spec;
  spec.c = 3, spec.h = 6, spec.w = 6, spec.k = 3, spec.r = 3, spec.s = 3, spec.pad_y = 1, spec.pad_x = 1;
  const auto weights = numbers({3, 3, 3, 3}, weight);
  for (float& value : weights->as<float>()) value *= 0.1f;
  PipelineStep step;
  step.name = name;
  step.spec = spec;
  step.arguments = {{from, {}}, {"", {nullptr, Constant::create(weights)}}, {to, {}}};
  return step;
}

struct Chain {
  std::shared_ptr<HostTensor> input = numbers(square, -0.5f);
  std::shared_ptr<HostTensor> output = HostTensor::create(DType::f32, square).value();
  Pipeline pipeline;

  Chain() {
    pipeline.name = "chain";
    pipeline.tensors = {{"x", DType::f32, square, Access::read, input},
                        intermediate("a"),
                        intermediate("b"),
                        intermediate("c"),
                        {"y", DType::f32, square, Access::write, output}};
    pipeline.steps = {conv("1", "x", "a", 0.1f), conv("2", "a", "b", 0.3f), conv("3", "b", "c", 0.5f),
                      conv("4", "c", "y", 0.7f)};
  }

  PipelineRequest on_beta() const {
    PipelineRequest request;
    request.pipeline = pipeline;
    request.device = "beta";
    return request;
  }
};

// The same by one job after another.
std::vector<float> by_jobs(Runtime& runtime, const Pipeline& pipeline, std::shared_ptr<HostTensor> value,
                           const std::vector<std::size_t>& order) {
  for (const std::size_t at : order) {
    const PipelineStep& step = pipeline.steps[at];
    RunRequest request;
    request.name = step.name;
    request.spec = step.spec;
    const auto next = HostTensor::create(DType::f32, square).value();
    request.tensors = {{value, nullptr}, step.arguments[1].value, {next, nullptr}};
    request.device = "beta";
    REQUIRE(runtime.run(request).status.text() == "ok");
    value = next;
  }
  const auto values = value->as<float>();
  return {values.begin(), values.end()};
}

std::vector<float> values_in(const HostTensor& tensor) {
  return {tensor.as<float>().begin(), tensor.as<float>().end()};
}

// Takes the last candidate, and remembers what it was asked and told.
struct Told {
  std::vector<std::string> selected;                                         // operation and shape
  std::vector<std::tuple<std::string, std::string, bool, StatusCode>> runs;  // shape, device, first run, status
  double flops = 0, bytes = 0;
};
class Listener final : public DeviceSelector {
 public:
  explicit Listener(Told& told) : told_(told) {}

  Result<Choice> select(const ShapeBucket& work, std::span<const Candidate> candidates,
                        const JobTerms&) noexcept override {
    told_.selected.push_back(work.operation + " " + work.shape);
    return Choice{candidates.size() - 1, "the last", std::nullopt};
  }
  Result<Explanation> explain(const ShapeBucket&, std::span<const Candidate>, const JobTerms&) noexcept override {
    return unsupported("nothing to explain");
  }
  void record(const ShapeBucket& work, const DeviceInfo& device, const Measurement& measurement,
              const RunConditions& conditions) noexcept override {
    if (work.operation != "pipeline") return;
    told_.runs.emplace_back(work.shape, device.id, measurement.first_run, conditions.status.code);
    told_.flops = work.flops;
    told_.bytes = work.bytes;
  }

 private:
  Told& told_;
};

std::string refusal(const Pipeline& pipeline) {
  const Status status = validate(pipeline);
  CHECK(status.code == StatusCode::invalid_argument);
  CHECK_THAT(status.message, Contains("pipeline '" + pipeline.name + "'"));
  return status.message;
}

}  // namespace

TEST_CASE("pipeline: its steps run as one submission, and its result is that of the jobs") {
  RuntimeFixture fixture;
  Chain chain;
  const auto want = by_jobs(fixture.runtime(), chain.pipeline, chain.input, {0, 1, 2, 3});
  const auto before = fixture.controls("beta").submits.load();
  PipelineRequest request = chain.on_beta();
  request.repeat = 3;
  request.check = PipelineCheck::final;
  const RunReport report = fixture.runtime().run(request);
  REQUIRE(report.status.text() == "ok");
  CHECK(values_in(*chain.output) == want);
  CHECK(fixture.controls("beta").submits == before + 3);
  CHECK(report.op == "pipeline");
  CHECK(report.verified == true);
  CHECK(report.runs == 3);
  CHECK(report.flops == Approx(4 * flops(chain.pipeline.steps[0].spec)));
  CHECK(report.intermediate_bytes == 2 * 108 * sizeof(float));  // three tensors, two at one time
  CHECK(report.live_bytes == report.intermediate_bytes);
  REQUIRE(report.steps.size() == 4);
  CHECK(report.steps[2].name == "3");
  CHECK(report.steps[2].op == "conv2d");
  CHECK(report.steps[2].rounds == 1);
  CHECK(report.steps[2].tier == Tier::memory);
}

TEST_CASE("pipeline: each step is checked and measured when that is asked for") {
  RuntimeFixture fixture;
  Chain chain;
  PipelineRequest request = chain.on_beta();
  request.check = PipelineCheck::steps;
  request.measure_steps = true;
  ToldTrace trace;
  fixture.trace = &trace;
  const RunReport report = fixture.runtime().run(request);
  REQUIRE(report.status.text() == "ok");
  REQUIRE(report.steps.size() == 4);
  const std::vector<ToldEvent> events = trace.events();
  const ToldEvent whole = trace.first("chain");
  std::uint64_t last = whole.begin_ns;
  for (const StepReport& step : report.steps) {
    CHECK(step.verified == true);
    CHECK(step.device_ns > 0);
    CHECK(step.error_bound > 0);
    const auto told = std::ranges::find_if(events, [&](const ToldEvent& event) {
      return event.name == step.name && event.words.contains("variant");  // not the job that checks the step
    });
    REQUIRE(told != events.end());
    CHECK(told->area == TraceArea::runtime);
    CHECK(told->words.at("op") == "conv2d");
    CHECK(*told->end_ns - told->begin_ns == step.device_ns);
    CHECK(told->begin_ns >= last);
    last = *told->end_ns;
  }
  CHECK(last <= *whole.end_ns);
}

TEST_CASE("pipeline: a loop exchanges its tensors after each round") {
  RuntimeFixture fixture;
  const std::uint32_t rounds = GENERATE(1u, 2u, 5u);
  Chain chain;
  chain.pipeline.tensors.resize(3);
  chain.pipeline.tensors[1] = {"a", DType::f32, square, Access::write, chain.output};
  PipelineStep step = conv("inner", "a", "b", 0.3f);
  PipelineStep loop;
  const bool nested = GENERATE(false, true);
  (nested ? loop : step).repeat = rounds;
  (nested ? loop : step).swap = {{"a", "b"}};
  loop.name = "outer";
  loop.steps = {step};
  chain.pipeline.steps = {conv("first", "x", "a"), nested ? loop : step};
  PipelineRequest request = chain.on_beta();
  request.repeat = 2;
  request.check = PipelineCheck::steps;
  const RunReport report = fixture.runtime().run(request);
  REQUIRE(report.status.text() == "ok");
  CHECK(report.verified == true);
  CHECK(report.steps[1].rounds == rounds);
  CHECK(report.steps[1].name == (nested ? "outer/inner" : "inner"));
  chain.pipeline.steps[1] = step;
  std::vector<std::size_t> order{0};
  order.insert(order.end(), rounds, 1);
  CHECK(values_in(*chain.output) == by_jobs(fixture.runtime(), chain.pipeline, chain.input, order));
}

TEST_CASE("pipeline: an input that is overwritten, and a tensor that is input and result, begin each run alike") {
  RuntimeFixture fixture;
  Chain chain;
  const auto given = values_in(*chain.input);
  chain.pipeline.tensors[1].access = Access::invalid;
  SECTION("an input that a step writes is not changed") {
    chain.pipeline.tensors.erase(chain.pipeline.tensors.begin() + 2, chain.pipeline.tensors.begin() + 4);
    chain.pipeline.steps = {conv("1", "x", "a"), conv("2", "a", "x"), conv("3", "x", "y")};
  }
  SECTION("one tensor for both") {
    chain.pipeline.tensors.resize(2);
    chain.pipeline.tensors[0].access = Access::read_write;
    chain.pipeline.steps = {conv("1", "x", "a"), conv("2", "a", "x"), conv("3", "x", "a"), conv("4", "a", "x")};
  }
  PipelineRequest request;
  request.pipeline = chain.pipeline;
  request.repeat = 3;
  request.check = PipelineCheck::steps;
  const bool in_place = chain.pipeline.tensors.size() == 2;
  const RunReport report = fixture.runtime().run(request);
  REQUIRE(report.status.text() == "ok");
  CHECK(report.verified == true);
  CHECK((values_in(*chain.input) == given) == !in_place);
}

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
  CHECK((*recorded)->selected_because() == "asked for");
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
  CHECK_THAT(busy.status.message, Contains("in flight still"));
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
  CHECK_THAT(error_of(request), Contains("pipeline 'chain': asks for 2 repeats"));
  request = chain.on_beta();
  request.progress = [](std::uint32_t) { return true; };
  CHECK_THAT(error_of(request), Contains("pipeline 'chain': asks for its progress"));
  request = chain.on_beta();
  request.timeout = std::chrono::seconds(1);
  CHECK_THAT(error_of(request), Contains("those of the replay"));
  request = chain.on_beta();
  request.pipeline.tensors[4].host = nullptr;
  CHECK_THAT(error_of(request), Contains("tensor 'y': has no host tensor"));
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
  REQUIRE(fixture.registry
              .add_selector("test", "listener",
                            [&](const SelectorContext&) {
                              return Result<std::unique_ptr<DeviceSelector>>(std::make_unique<Listener>(told));
                            })
              .ok());
  fixture.config.selector.name = "listener";
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
  const std::string shape = std::get<0>(told.runs[0]), device = report.device.id;
  CHECK(told.selected[0] == "pipeline " + shape);
  using Run = decltype(told.runs)::value_type;
  CHECK(told.runs[0] == Run{shape, device, true, StatusCode::ok});
  CHECK(told.runs[1] == Run{shape, device, false, StatusCode::ok});
  CHECK(told.flops == Approx(report.flops));
  CHECK(told.bytes == Approx(2 * 108 * sizeof(float)));  // what it reads and writes outside
  request.repeat = 1;
  request.device = device;

  const auto recorded = fixture.runtime().record(request).value();
  REQUIRE(fixture.runtime().replay(*recorded).status.text() == "ok");
  REQUIRE(told.runs.size() == 3);
  CHECK(told.runs[2] == Run{shape, device, false, StatusCode::ok});

  fixture.controls(device).wrong_at = fixture.controls(device).submits + 1;
  CHECK(fixture.runtime().run(request).status.code == StatusCode::wrong_result);
  REQUIRE(told.runs.size() == 4);
  CHECK(told.runs[3] == Run{shape, device, false, StatusCode::wrong_result});

  request.pipeline.steps[3].spec = request.pipeline.steps[0].spec;  // the same work
  REQUIRE(fixture.runtime().run(request).status.text() == "ok");
  CHECK(std::get<0>(told.runs[4]) == shape);
  auto& spec = std::get<Conv2dSpec>(request.pipeline.steps[3].spec);
  spec.activation = Activation::relu;  // other work
  REQUIRE(fixture.runtime().run(request).status.text() == "ok");
  CHECK(std::get<0>(told.runs[5]) != shape);
  CHECK(std::get<2>(told.runs[5]));
}

TEST_CASE("pipeline: a run that is stopped ends before the next of its repetitions") {
  RuntimeFixture fixture;
  Chain chain;
  PipelineRequest request = chain.on_beta();
  request.repeat = 1000;
  std::atomic<bool> stop{false};
  request.stop = &stop;
  request.progress = [&](std::uint32_t finished) {
    stop = finished == 2;
    return true;
  };
  const RunReport report = fixture.runtime().run(request);
  CHECK(report.status.code == StatusCode::cancelled);
  CHECK(report.runs == 2);
}

TEST_CASE("pipeline: a wrong result fails the run") {
  RuntimeFixture fixture;
  Chain chain;
  PipelineRequest request = chain.on_beta();
  request.check = GENERATE(PipelineCheck::final, PipelineCheck::steps);
  fixture.controls("beta").wrong_at = 1;
  const RunReport report = fixture.runtime().run(request);
  CHECK(report.status.code == StatusCode::wrong_result);
  CHECK(report.verified == false);
  CHECK_THAT(report.status.message, Contains("1 of 108 elements is wrong"));
}

TEST_CASE("pipeline: expected results are compared, and must be results") {
  RuntimeFixture fixture;
  Chain chain;
  PipelineRequest request;
  request.pipeline = chain.pipeline;
  request.check = PipelineCheck::final;
  const auto wrong = numbers(square, 9);
  request.expected = {{"y", {wrong, {}, "want.npy"}}};
  const RunReport failed = fixture.runtime().run(request);
  CHECK(failed.verified == false);
  CHECK_THAT(failed.status.message, Contains("want.npy"));
  request.expected[0].tensor = "a";
  CHECK_THAT(fixture.runtime().run(request).status.message, Contains("tensor 'a': is no result"));
  request.expected.clear();
  request.pipeline.tensors[4].host = nullptr;
  CHECK_THAT(fixture.runtime().run(request).status.message, Contains("tensor 'y': has no host tensor"));
}

TEST_CASE("pipeline: another device runs it where the first has no memory") {
  RuntimeFixture fixture;
  fixture.config.device.prefer = "alpha";
  fixture.controls("alpha").fail_buffers = true;
  Chain chain;
  PipelineRequest request;
  request.pipeline = chain.pipeline;
  const RunReport report = fixture.runtime().run(request);
  CHECK(report.status.text() == "ok");
  CHECK(report.device.id == "beta");
  CHECK(report.steps.size() == 4);
}

TEST_CASE("pipeline: what does not fit together is refused, with the step, the tensor and both sides") {
  Chain chain;
  Pipeline& pipeline = chain.pipeline;
  REQUIRE(validate(pipeline).ok());
  SECTION("a shape") {
    pipeline.tensors[1].shape = {1, 3, 6, 7};
    CHECK_THAT(refusal(pipeline), Contains("step '1'") && Contains("tensor 'a' is float32 [1, 3, 6, 7]") &&
                                      Contains("expected float32 [1, 3, 6, 6]"));
  }
  SECTION("a type") {
    pipeline.tensors[1].dtype = DType::i32;
    CHECK_THAT(refusal(pipeline), Contains("tensor 'a' is int32 [1, 3, 6, 6]"));
  }
  SECTION("an unknown tensor") {
    pipeline.steps[1].arguments[0].tensor = "z";
    CHECK_THAT(refusal(pipeline), Contains("step '2'") && Contains("tensor 'z'") && Contains("x, a, b, c, y"));
  }
  SECTION("a tensor that nothing has written") {
    pipeline.steps[0].arguments[0].tensor = "b";
    pipeline.tensors.erase(pipeline.tensors.begin());
    CHECK_THAT(refusal(pipeline), Contains("step '1'") && Contains("tensor 'b' is read before any step writes it"));
  }
  SECTION("a result that nothing writes") {
    pipeline.steps.pop_back();
    CHECK_THAT(refusal(pipeline), Contains("tensor 'y': is a result, but no step writes it"));
  }
  SECTION("a tensor that nothing uses") {
    pipeline.tensors.push_back(intermediate("spare"));
    CHECK_THAT(refusal(pipeline), Contains("tensor 'spare': no step uses it"));
  }
  SECTION("a name twice") {
    pipeline.tensors.push_back(intermediate("a"));
    CHECK_THAT(refusal(pipeline), Contains("tensor 'a': its name is used twice"));
  }
  SECTION("a step's name twice") {
    pipeline.steps[1].name = "1";
    CHECK_THAT(refusal(pipeline), Contains("step '1': its name is used twice"));
  }
  SECTION("a step that writes what it reads") {
    pipeline.steps[1].arguments[2].tensor = "a";
    CHECK_THAT(refusal(pipeline), Contains("step '2'") && Contains("tensor 'a' is used twice"));
  }
  SECTION("tensors of two shapes exchanged") {
    pipeline.tensors[2].shape = {1, 3, 36, 1};
    pipeline.steps[1].swap = {{"a", "b"}};
    CHECK_THAT(refusal(pipeline), Contains("step '2'"));
  }
  SECTION("a tensor exchanged with itself") {
    pipeline.steps[1].swap = {{"a", "a"}};
    CHECK_THAT(refusal(pipeline), Contains("step '2'") && Contains("swap: 'a' is float32"));
  }
  SECTION("no round") {
    pipeline.steps[1].repeat = 0;
    CHECK_THAT(refusal(pipeline), Contains("step '2'") && Contains("repeat is 0"));
  }
  SECTION("too many rounds") {
    pipeline.steps[1].repeat = 2'000'000'000;
    CHECK_THAT(refusal(pipeline), Contains("more than 100000 steps"));
  }
  SECTION("weights that are a tensor") {
    pipeline.steps[1].arguments[1] = {"x", {}};
    CHECK_THAT(refusal(pipeline), Contains("step '2'") && Contains("found tensor 'x', expected a Constant"));
  }
  SECTION("too few arguments") {
    pipeline.steps[1].arguments.pop_back();
    CHECK_THAT(refusal(pipeline), Contains("2 arguments given, expected 3"));
  }
  SECTION("no steps") {
    pipeline.steps.clear();
    CHECK_THAT(refusal(pipeline), Contains("has no steps"));
  }
}
