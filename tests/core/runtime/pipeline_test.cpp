// Pipelines: checks, loops, memory of intermediates, and runs on fixture devices.
#include "core/runtime/pipeline_chain.hpp"
#include "core/runtime/told_selector.hpp"
#include "support/told_trace.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

using namespace kiln;
using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

std::string refusal(const Pipeline& pipeline) {
  const Status status = validate(pipeline);
  CHECK(status.code == StatusCode::invalid_argument);
  CHECK_THAT(status.message, Contains("pipeline '" + pipeline.name + "'"));
  return status.message;
}

// A convolution, and the fixture's `copy`, a user's kernel, which the devices of the fixture then run.
Chain chain_with_copy(RuntimeFixture& fixture) {
  for (const char* name : {"alpha", "beta"}) {
    fixture.options(name).info.dialects = {Dialect::library, Dialect::opencl_c};
  }
  UserKernelSpec copy;
  copy.path = "copy.cl";
  copy.text = "copy";
  copy.dialect = Dialect::opencl_c;
  copy.bindings = {{Access::read, 432}, {Access::write, 432}};
  Chain chain;
  chain.pipeline.tensors = {chain.pipeline.tensors[0], intermediate("a"), chain.pipeline.tensors[4]};
  chain.pipeline.steps = {conv("1", "x", "a"), {"2", copy, {{"a", {}}, {"y", {}}}}};
  return chain;
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
  CHECK(report.bytes == Approx(4 * bytes_moved(chain.pipeline.steps[0].spec)));
  CHECK(report.variant == "4 runs");
  CHECK(report.keys.size() == 4);
  CHECK(report.first_output_ns > 0);
  CHECK(report.wall_min_ns > 0);
  CHECK(report.wall_min_ns <= report.median.wall_ns);
  CHECK(report.median.wall_ns <= report.wall_max_ns);
  REQUIRE(report.steps.size() == 4);
  CHECK(report.steps[2].flops == Approx(flops(chain.pipeline.steps[2].spec)));
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

TEST_CASE("pipeline: two results that a loop swaps reach the right tensors") {
  RuntimeFixture fixture;
  const std::uint32_t rounds = GENERATE(1u, 2u, 3u);
  Chain chain;
  const auto before = HostTensor::create(DType::f32, square).value();
  chain.pipeline.tensors = {{"x", DType::f32, square, Access::read, chain.input},
                            {"a", DType::f32, square, Access::write, chain.output},
                            {"b", DType::f32, square, Access::write, before}};
  chain.pipeline.steps = {conv("first", "x", "a"), conv("again", "a", "b", 0.3f)};
  chain.pipeline.steps[1].repeat = rounds;
  chain.pipeline.steps[1].swap = {{"a", "b"}};
  PipelineRequest request = chain.on_beta();
  request.repeat = 2;
  request.check = GENERATE(PipelineCheck::none, PipelineCheck::steps);
  const RunReport report = fixture.runtime().run(request);
  REQUIRE(report.status.text() == "ok");
  std::vector<std::size_t> order{0};
  order.insert(order.end(), rounds - 1, 1);
  CHECK(values_in(*before) == by_jobs(fixture.runtime(), chain.pipeline, chain.input, order));
  order.push_back(1);
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

TEST_CASE("pipeline: progress is told after each run and can end the repetitions before the last") {
  RuntimeFixture fixture;
  Chain chain;
  PipelineRequest request = chain.on_beta();
  request.repeat = 3;
  std::uint32_t last = 2;
  std::vector<std::uint32_t> told;
  request.progress = [&](std::uint32_t finished) {
    told.push_back(finished);
    return finished < last;
  };
  const RunReport stopped = fixture.runtime().run(request);
  CHECK(stopped.status.text() == "cancelled: stopped on request after 2 runs");
  CHECK(stopped.runs == 2);
  CHECK(told == std::vector<std::uint32_t>{1, 2});
  last = 3;
  told.clear();
  CHECK(fixture.runtime().run(request).status.text() == "ok");
  CHECK(told == std::vector<std::uint32_t>{1, 2, 3});
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

TEST_CASE("pipeline: of several runs the first and the last are checked") {
  struct Case {
    std::uint64_t wrong_at;
    bool fails;
    std::uint32_t runs;
  };
  for (const Case& one : {Case{1, true, 0}, Case{2, false, 4}, Case{3, false, 4}, Case{4, true, 3}}) {
    CAPTURE(one.wrong_at);
    RuntimeFixture fixture;
    Chain chain;
    PipelineRequest request = chain.on_beta();
    request.repeat = 4;
    request.check = PipelineCheck::final;
    fixture.controls("beta").wrong_at = one.wrong_at;
    const RunReport report = fixture.runtime().run(request);
    CHECK(report.status.code == (one.fails ? StatusCode::wrong_result : StatusCode::ok));
    CHECK(report.verified == !one.fails);
    CHECK(report.runs == one.runs);
  }
}

TEST_CASE("pipeline: a rate above the device's roof is an error, never a figure") {
  RuntimeFixture fixture;
  fixture.options("beta").info.roof_gflops = 1e-9;
  Chain chain;
  const RunReport report = fixture.runtime().run(chain.on_beta());
  CHECK(report.status.code == StatusCode::internal);
  CHECK_THAT(report.status.message, Contains("beta, whose roof is"));
  CHECK(report.runs == 0);
  CHECK(report.first_output_ns == 0);
  CHECK(report.wall_min_ns == 0);
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
  CHECK_THAT(fixture.runtime().run(request).status.message, Contains("tensor 'a' is not a result"));
  request.expected.clear();
  request.pipeline.tensors[4].host = nullptr;
  CHECK_THAT(fixture.runtime().run(request).status.message, Contains("tensor 'y' has no host tensor"));
}

TEST_CASE("pipeline: what a user's kernel in it computes is not the device's fault, and its work is not known") {
  Told told;
  RuntimeFixture fixture;
  ToldSelector::serve(fixture, told);
  const Chain chain = chain_with_copy(fixture);
  PipelineRequest request = chain.on_beta();
  request.check = PipelineCheck::final;
  request.expected = {{"y", {numbers(square, 9), {}, "want.npy"}}};
  for (int run = 0; run < 4; ++run) {  // three failures in a row would set it aside
    const RunReport report = fixture.runtime().run(request);
    CHECK(report.status.code == StatusCode::wrong_result);
    CHECK(report.device.id == "beta");
  }
  REQUIRE(told.runs.size() == 4);
  CHECK(told.runs[0].work.flops == 0);  // a kernel's FLOPs are not known
  CHECK(told.runs[0].work.bytes > 0);
}

TEST_CASE("pipeline: what has no reference is compared with its steps run as jobs") {
  RuntimeFixture fixture;
  const Chain chain = chain_with_copy(fixture);
  PipelineRequest request = chain.on_beta();
  request.check = PipelineCheck::steps;
  support::FixtureControls& beta = fixture.controls("beta");
  const std::string not_the_same = "the pipeline's result is not that of its steps run as jobs: ";
  SECTION("right") {
    const RunReport report = fixture.runtime().run(request);
    REQUIRE(report.status.text() == "ok");
    CHECK(report.verified == true);
    CHECK(report.compared_elements == 108);
    REQUIRE(report.steps.size() == 2);
    CHECK(report.steps[0].verified == true);
    CHECK_FALSE(report.steps[1].verified.has_value());
  }
  SECTION("wrong in the pipeline") {
    beta.wrong_at = 1;
    if (GENERATE(false, true)) std::ranges::reverse(request.pipeline.tensors);  // the result is the first
    const RunReport report = fixture.runtime().run(request);
    CHECK(report.status.code == StatusCode::wrong_result);
    CHECK_THAT(report.status.message, Catch::StartsWith(not_the_same) && Contains("1 of 108 elements is wrong"));
    CHECK(report.verified == false);
  }
  SECTION("within the tolerance of the request") {
    beta.wrong_at = 1;
    request.tolerance = Tolerance{2, 0};
    CHECK(fixture.runtime().run(request).status.text() == "ok");
  }
  SECTION("within the tolerance of the result") {
    beta.wrong_at = 1;
    request.expected = {{"y", {nullptr, Tolerance{2, 0}}}};
    CHECK(fixture.runtime().run(request).status.text() == "ok");
  }
  SECTION("wrong in a step") {
    beta.wrong_at = 2;
    const RunReport report = fixture.runtime().run(request);
    CHECK(report.status.code == StatusCode::wrong_result);
    CHECK_THAT(report.status.message, Catch::StartsWith("step '1': "));
    CHECK(report.verified == false);
    REQUIRE(report.steps.size() == 2);
    CHECK(report.steps[0].verified == false);
    CHECK(report.steps[0].max_rel_error > 0.1);
  }
  SECTION("within the tolerance of the step") {
    beta.wrong_at = 2;
    request.pipeline.steps[0].tolerance = Tolerance{2, 0};
    const RunReport report = fixture.runtime().run(request);
    CHECK(report.status.code == StatusCode::wrong_result);
    CHECK_THAT(report.status.message, Catch::StartsWith(not_the_same));
    REQUIRE(report.steps.size() == 2);
    CHECK(report.steps[0].verified == true);
  }
}

TEST_CASE("pipeline: another device runs it where the first has no memory, or is lost while it runs") {
  const bool lost = GENERATE(false, true);
  RuntimeFixture fixture;
  fixture.config.device.prefer = "alpha";
  fixture.controls("alpha").fail_buffers = !lost;
  fixture.controls("alpha").lose_at = lost ? 1 : 0;
  Chain chain;
  PipelineRequest request;
  request.pipeline = chain.pipeline;
  const RunReport report = fixture.runtime().run(request);
  CHECK(report.status.text() == "ok");
  CHECK(report.device.id == "beta");
  REQUIRE(report.steps.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) CHECK(report.steps[i].name == std::to_string(i + 1));
  REQUIRE(report.notes.size() == 1);
  CHECK_THAT(report.notes[0], Contains("alpha cannot serve"));
  CHECK(values_in(*chain.output) == by_jobs(fixture.runtime(), chain.pipeline, chain.input, {0, 1, 2, 3}));
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
    const std::string why = refusal(pipeline);
    CHECK_THAT(why, Contains("has no steps"));
    RuntimeFixture fixture;
    const RunReport report = fixture.runtime().run(chain.on_beta());
    CHECK(report.status.text() == "invalid_argument: " + why);
    CHECK(report.name == "chain");
    CHECK(report.op == "pipeline");
    CHECK(report.runs == 0);
    CHECK(fixture.controls("beta").submits == 0);
  }
}
