// Requests of pipelines: the forms of the tensors that steps share, and what does not fit, told with both sides.
#include <kiln/data.hpp>

#include <catch2/catch.hpp>

#include <iterator>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/data/pipeline_config.hpp"
#include "core/data/scratch_folder.hpp"

using namespace kiln;
using kiln::test::add_step;
using kiln::test::kernel_step;
using kiln::test::pipeline_of;
using kiln::test::pipeline_tensor;
using kiln::test::refused_pipeline;
using kiln::test::ScratchFolder;
using kiln::test::step_binding;

TEST_CASE("pipeline request: a tensor has the type and shape that its step writes", "[pipeline_request]") {
  struct Declared {
    DType dtype;
    Shape shape;
    std::string found;  // in the error; empty: it fits
  };
  const Declared cases[] = {
      {DType::invalid, {}, ""},
      {DType::f32, {}, ""},
      {DType::invalid, {2, 3}, ""},
      {DType::f32, {2, 3}, ""},
      {DType::i32, {}, "int32"},
      {DType::f64, {}, "float64"},
      {DType::i32, {2, 3}, "int32 [2, 3]"},
      {DType::invalid, {3, 2}, "float32 [3, 2]"},
      {DType::f32, {2, 3, 1}, "float32 [2, 3, 1]"},
  };
  for (const Declared& declared : cases) {
    INFO("declared as " << numpy_name(declared.dtype) << " " << to_string(declared.shape));
    const PipelineConfig config = pipeline_of({pipeline_tensor("x", "random:1", DType::f32, {2, 3}),
                                               pipeline_tensor("y", "", declared.dtype, declared.shape)},
                                              add_step("x", "x", "y"));
    const auto request = data::make_request(config, data::Contents::check);
    if (!declared.found.empty()) {
      REQUIRE_FALSE(request);
      CHECK(request.error().code == StatusCode::invalid_argument);
      CHECK(request.error().message ==
            "pipeline 'p': step 'sum': tensor 'y' is " + declared.found + ", the step writes float32 [2, 3]");
      continue;
    }
    INFO((request ? std::string() : request.error().text()));
    REQUIRE(request);
    REQUIRE(request->pipeline.tensors.size() == 2);
    CHECK(request->pipeline.tensors[1].name == "y");
    CHECK(request->pipeline.tensors[1].dtype == DType::f32);
    CHECK(request->pipeline.tensors[1].shape == Shape{2, 3});
  }
  const auto request =
      data::make_request(pipeline_of({pipeline_tensor("x", "random:1", DType::f32, {2, 3})}, add_step("x", "x", "new")),
                         data::Contents::check);
  REQUIRE(request);
  REQUIRE(request->pipeline.tensors.size() == 2);
  CHECK(request->pipeline.tensors[1].name == "new");
  CHECK(request->pipeline.tensors[1].dtype == DType::f32);
  CHECK(request->pipeline.tensors[1].shape == Shape{2, 3});
}

TEST_CASE("pipeline request: an error about an unknown tensor lists the known tensors", "[pipeline_request]") {
  const std::vector<KernelBindingConfig> tensors{pipeline_tensor("x", "random:1", DType::f32, {2, 3}),
                                                 pipeline_tensor("y", "random:2", DType::f32, {2, 3})};
  const std::string unknown = "found \"z\", expected a tensor that is declared or written by an earlier step: x, y";
  const Status inout = refused_pipeline(pipeline_of(tensors, kernel_step(step_binding(Access::read_write, "z"))));
  CHECK(inout.code == StatusCode::not_found);
  CHECK(inout.message == "pipeline 'p': step 'mine': bindings[0]: inout: " + unknown);
  const Status input = refused_pipeline(pipeline_of(tensors, kernel_step(step_binding(Access::read, "z"))));
  CHECK(input.code == StatusCode::not_found);
  CHECK(input.message == "pipeline 'p': step 'mine': bindings[0]: input: " + unknown +
                             " (input: found \"z\", expected random:SEED, he:SEED, zeros:, or a file .npy, .png, "
                             ".bin or .raw)");
  const Status addend = refused_pipeline(pipeline_of(tensors, add_step("x", "z", "y")));
  CHECK(addend.code == StatusCode::not_found);
  CHECK(addend.message == "pipeline 'p': step 'sum': addend: " + unknown);
}

TEST_CASE("pipeline request: a kernel reads and writes the tensors of its bindings", "[pipeline_request]") {
  for (const Access access : {Access::read, Access::read_write}) {
    const auto request = data::make_request(
        pipeline_of({pipeline_tensor("x", "random:1", DType::f32, {2, 3})}, kernel_step(step_binding(access, "x"))),
        data::Contents::check);
    INFO((request ? std::string() : request.error().text()));
    REQUIRE(request);
    REQUIRE(request->pipeline.steps.size() == 1);
    const PipelineStep& step = request->pipeline.steps[0];
    REQUIRE(step.arguments.size() == 1);
    CHECK(step.arguments[0].tensor == "x");
    const auto& spec = std::get<UserKernelSpec>(step.spec);
    REQUIRE(spec.bindings.size() == 1);
    CHECK(spec.bindings[0].access == access);
    CHECK(spec.bindings[0].dtype == DType::f32);
    CHECK(spec.bindings[0].shape == Shape{2, 3});
    CHECK(spec.bindings[0].bytes == 24);
  }
}

TEST_CASE("pipeline request: an error about a binding names the binding and the tensor", "[pipeline_request]") {
  const auto message_of = [](const KernelBindingConfig& binding) {
    const Status status = refused_pipeline(pipeline_of(
        {pipeline_tensor("x", "random:1", DType::f32, {2, 3}), pipeline_tensor("later", "")}, kernel_step(binding)));
    CHECK(status.code == StatusCode::invalid_argument);
    return status.message;
  };
  const std::string who = "pipeline 'p': step 'mine': bindings[0]: ";
  KernelBindingConfig binding = step_binding(Access::read, "x");
  binding.dtype = DType::i32;
  CHECK(message_of(binding) == who + "tensor 'x' is float32 [2, 3], expected int32 [2, 3]");
  binding.shape = {3, 2};
  CHECK(message_of(binding) == who + "tensor 'x' is float32 [2, 3], expected int32 [3, 2]");
  binding.dtype = DType::invalid;
  CHECK(message_of(binding) == who + "tensor 'x' is float32 [2, 3], expected float32 [3, 2]");
  binding = step_binding(Access::read_write, "x");
  binding.output = "later";
  CHECK(message_of(binding) == who + "found inout and output, expected only one of them in a step");
  binding = step_binding(Access::read, "x");
  binding.expect = "x.npy";
  CHECK(message_of(binding) == who + "expect and tolerance: found in a step, expected in the tensor of the pipeline");
  CHECK(message_of(step_binding(Access::read_write, "later")) ==
        who + "tensor 'later': shape is unknown. Add shape = [N, …] to the tensor");
}

TEST_CASE("pipeline request: a texture is a picture if its tensor fits a PNG", "[pipeline_request]") {
  const ScratchFolder folder;
  for (const DType dtype : {DType::u8, DType::u16}) {
    const auto samples = HostTensor::create(dtype, {2, 3, 4});
    REQUIRE(samples);
    const std::string name = dtype == DType::u8 ? "bytes" : "words";
    REQUIRE(data::store_tensor(folder / (name + ".png"), **samples).ok());
    REQUIRE(data::store_tensor(folder / (name + ".npy"), **samples).ok());
  }
  struct Case {
    BindingKind kind;
    std::string file;
    DType dtype;  // of the pipeline's tensor; a PNG without one is float32
    bool is_picture;
  };
  const Case cases[] = {
      {BindingKind::image, "bytes.png", DType::u8, true},    {BindingKind::sampler, "bytes.png", DType::u8, true},
      {BindingKind::buffer, "bytes.png", DType::u8, false},  {BindingKind::image, "words.png", DType::u16, true},
      {BindingKind::image, "bytes.npy", DType::u8, false},   {BindingKind::sampler, "words.npy", DType::u16, false},
      {BindingKind::buffer, "words.npy", DType::u16, false}, {BindingKind::image, "bytes.png", DType::invalid, false},
  };
  const auto is_picture = [&](const KernelBindingConfig& binding, std::vector<KernelBindingConfig> tensors) {
    PipelineConfig config = pipeline_of(std::move(tensors), kernel_step(binding));
    config.job.base = folder.path();
    config.steps[0].job.base = folder.path();
    const auto request = data::make_request(config, data::Contents::check);
    INFO((request ? std::string() : request.error().text()));
    REQUIRE(request);
    REQUIRE(request->pipeline.steps.size() == 1);
    return std::get<UserKernelSpec>(request->pipeline.steps[0].spec).bindings.at(0).picture;
  };
  for (const Case& each : cases) {
    INFO("kind " << static_cast<int>(each.kind) << " of " << each.file);
    KernelBindingConfig binding = step_binding(Access::read, "photo");
    binding.kind = each.kind;
    if (each.kind != BindingKind::buffer) binding.name = "shown";
    CHECK(is_picture(binding, {pipeline_tensor("photo", each.file, each.dtype)}) == each.is_picture);
    if (each.dtype == DType::invalid) continue;
    binding.input = each.file;  // which only this step reads
    CHECK(is_picture(binding, {}) == each.is_picture);
  }
}

TEST_CASE("pipeline request: what only one step reads is its own argument", "[pipeline_request]") {
  const ScratchFolder folder;
  const auto stored = HostTensor::create(DType::f32, {3});
  REQUIRE(stored);
  (*stored)->as<float>()[1] = 4;
  REQUIRE(data::store_tensor(folder / "own.npy", **stored).ok());
  KernelBindingConfig values = step_binding(Access::read, ""), file = step_binding(Access::read, "own.npy");
  values.numbers = {1.5, 2, 3};
  values.dtype = DType::f32;
  values.shape = {3};
  for (const KernelBindingConfig& binding : {values, file}) {
    for (const data::Contents contents : {data::Contents::load, data::Contents::check}) {
      PipelineConfig config = pipeline_of({}, kernel_step(binding));
      config.job.base = config.steps[0].job.base = folder.path();
      const auto request = data::make_request(config, contents);
      INFO((request ? std::string() : request.error().text()));
      REQUIRE(request);
      const PipelineStep& step = request->pipeline.steps.at(0);
      REQUIRE(step.arguments.size() == 1);
      CHECK(step.arguments[0].tensor.empty());
      REQUIRE(step.arguments[0].value.host != nullptr);
      CHECK(step.arguments[0].value.host->shape() == Shape{3});
      const bool is_file = !binding.input.empty();
      const float second = is_file ? (contents == data::Contents::load ? 4.0f : 0.0f) : 2.0f;
      CHECK(step.arguments[0].value.host->as<float>()[1] == second);
      const auto& spec = std::get<UserKernelSpec>(step.spec);
      CHECK(spec.bindings.at(0).bytes == 12);
    }
  }
}

TEST_CASE("pipeline request: the keys of a pipeline, its tensors and its steps arrive in the request",
          "[pipeline_request]") {
  PipelineStepConfig first = add_step("x", "x", "a"), inner = add_step("a", "a", "b"), last = add_step("a", "x", "y");
  first.job.name = "first";
  first.job.tolerance = Tolerance{0.5, 0.25};
  last.job.name = "last";
  last.repeat = 2;
  PipelineStepConfig loop;
  loop.job.name = "loop";
  loop.repeat = 3;
  loop.swap = {{"a", "b"}};
  loop.steps = {inner};
  KernelBindingConfig result = pipeline_tensor("y", "", DType::f32, {2, 3});
  result.access = Access::write;
  result.output = "y.npy";
  result.expect = "zeros:";
  result.tolerance = Tolerance{0.125, 0.0625};
  PipelineConfig config =
      pipeline_of({pipeline_tensor("x", "random:1", DType::f32, {2, 3}), pipeline_tensor("a", "", DType::f32, {2, 3}),
                   pipeline_tensor("b", "", DType::f32, {2, 3}), result},
                  first);
  config.steps.push_back(loop);
  config.steps.push_back(last);
  config.job.device = "cpu:1";
  config.job.tolerance = Tolerance{2, 4};

  const auto request = data::make_request(config, data::Contents::load);
  INFO((request ? std::string() : request.error().text()));
  REQUIRE(request);
  CHECK(request->pipeline.name == "p");
  CHECK(request->device == "cpu:1");
  REQUIRE(request->tolerance.has_value());
  CHECK(request->tolerance->absolute == 2);
  CHECK(request->tolerance->relative == 4);
  REQUIRE(request->expected.size() == 1);
  CHECK(request->expected[0].tensor == "y");
  CHECK(request->expected[0].output.tensor != nullptr);
  CHECK(request->expected[0].output.name == "y.npy");
  REQUIRE(request->expected[0].output.tolerance.has_value());
  CHECK(request->expected[0].output.tolerance->absolute == 0.125);
  CHECK(request->expected[0].output.tolerance->relative == 0.0625);

  const std::pair<std::string, Access> tensors[] = {
      {"x", Access::read}, {"a", Access::invalid}, {"b", Access::invalid}, {"y", Access::write}};
  REQUIRE(request->pipeline.tensors.size() == std::size(tensors));
  for (std::size_t i = 0; i < std::size(tensors); ++i) {
    INFO(tensors[i].first);
    const PipelineTensor& tensor = request->pipeline.tensors[i];
    CHECK(tensor.name == tensors[i].first);
    CHECK(tensor.access == tensors[i].second);
    CHECK(tensor.dtype == DType::f32);
    CHECK(tensor.shape == Shape{2, 3});
    CHECK((tensor.host != nullptr) == (tensors[i].second != Access::invalid));
  }

  const std::vector<PipelineStep>& steps = request->pipeline.steps;
  REQUIRE(steps.size() == 3);
  CHECK(steps[0].name == "first");
  CHECK(steps[0].repeat == 1);
  CHECK(steps[0].swap.empty());
  CHECK(steps[0].steps.empty());
  REQUIRE(steps[0].tolerance.has_value());
  CHECK(steps[0].tolerance->absolute == 0.5);
  CHECK(steps[0].tolerance->relative == 0.25);
  REQUIRE(steps[0].arguments.size() == 3);
  CHECK(steps[0].arguments[0].tensor == "x");
  CHECK(steps[0].arguments[1].tensor == "x");
  CHECK(steps[0].arguments[2].tensor == "a");
  CHECK(steps[1].name == "loop");
  CHECK(steps[1].repeat == 3);
  REQUIRE(steps[1].swap.size() == 1);
  CHECK(steps[1].swap[0].first == "a");
  CHECK(steps[1].swap[0].second == "b");
  CHECK(steps[1].arguments.empty());
  REQUIRE(steps[1].steps.size() == 1);
  CHECK(steps[1].steps[0].name == "sum");
  CHECK(steps[1].steps[0].repeat == 1);
  CHECK_FALSE(steps[1].steps[0].tolerance.has_value());
  CHECK(steps[2].name == "last");
  CHECK(steps[2].repeat == 2);
  CHECK_FALSE(steps[2].tolerance.has_value());

  config.job.bindings.back().expect.clear();  // the tolerance is then for other comparisons
  config.job.device.clear();
  config.job.tolerance.reset();
  const auto plain = data::make_request(config, data::Contents::load);
  REQUIRE(plain);
  CHECK(plain->device.empty());
  CHECK_FALSE(plain->tolerance.has_value());
  REQUIRE(plain->expected.size() == 1);
  CHECK(plain->expected[0].tensor == "y");
  CHECK(plain->expected[0].output.tensor == nullptr);
  REQUIRE(plain->expected[0].output.tolerance.has_value());
  CHECK(plain->expected[0].output.tolerance->absolute == 0.125);
}
