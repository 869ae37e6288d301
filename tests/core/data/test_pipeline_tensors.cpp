// Requests of pipelines: where their tensors come from, what they are compared with, and where results go.
#include <kiln/data.hpp>

#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/data/pipeline_config.hpp"
#include "core/data/random_of.hpp"
#include "core/data/scratch_folder.hpp"

using namespace kiln;
using kiln::test::add_step;
using kiln::test::kernel_step;
using kiln::test::pipeline_of;
using kiln::test::pipeline_tensor;
using kiln::test::random_of;
using kiln::test::refused_pipeline;
using kiln::test::ScratchFolder;
using kiln::test::step_binding;

namespace {

constexpr data::Contents both_contents[] = {data::Contents::check, data::Contents::load};

KernelBindingConfig result_tensor(const std::string& output, const std::string& expect = "", DType dtype = DType::f32,
                                  Shape shape = {2, 3}) {
  KernelBindingConfig result = pipeline_tensor("y", "", dtype, std::move(shape));
  result.access = Access::write;
  result.output = output;
  result.expect = expect;
  return result;
}

PipelineConfig sum_of(KernelBindingConfig x, KernelBindingConfig y) {
  std::vector<KernelBindingConfig> tensors;
  tensors.push_back(std::move(x));
  tensors.push_back(std::move(y));
  return pipeline_of(std::move(tensors), add_step("x", "x", "y"));
}

KernelBindingConfig input_tensor(const std::string& source = "random:1") {
  return pipeline_tensor("x", source, DType::f32, {2, 3});
}

Result<PipelineRequest> made(const PipelineConfig& config, data::Contents contents, data::Memory* memory = nullptr) {
  auto request = data::make_request(config, contents, nullptr, memory);
  INFO((request ? std::string() : request.error().text()));
  REQUIRE(request);
  return request;
}

std::string told(const PipelineConfig& config, data::Contents contents, data::Memory* memory = nullptr) {
  const auto request = data::make_request(config, contents, nullptr, memory);
  return request ? std::string("accepted") : request.error().text();
}

}  // namespace

TEST_CASE("pipeline tensors: an input is loaded, and only its form is checked", "[pipeline_request]") {
  data::Memory memory;
  memory.tensors["given"] = random_of(DType::f32, {2, 3}, 1);
  for (const char* const source : {"random:1", "memory:given"}) {
    INFO(source);
    const PipelineConfig config = sum_of(input_tensor(source), result_tensor("y.npy"));
    const auto checked = made(config, data::Contents::check, &memory),
               loaded = made(config, data::Contents::load, &memory);
    for (const PipelineTensor& tensor : checked->pipeline.tensors) CHECK(tensor.host == nullptr);
    REQUIRE(loaded->pipeline.tensors.size() == 2);
    const auto& x = loaded->pipeline.tensors[0].host;
    REQUIRE(x != nullptr);
    CHECK(x->as<float>()[5] == random_of(DType::f32, {2, 3}, 1)->as<float>()[5]);
    CHECK((x == memory.tensors["given"]) == (std::string(source) == "memory:given"));
    REQUIRE(loaded->pipeline.tensors[1].host != nullptr);
    CHECK(loaded->pipeline.tensors[1].host->shape() == Shape{2, 3});
  }
  for (const data::Contents contents : both_contents) {
    CHECK(told(sum_of(input_tensor("none.npy"), result_tensor("y.npy")), contents) ==
          "not_found: pipeline 'p': tensor 'x': input: file none.npy: cannot open: No such file or directory");
    KernelBindingConfig both = input_tensor("none.npy");
    both.access = Access::read_write;
    CHECK(told(sum_of(both, result_tensor("y.npy")), contents) ==
          "not_found: pipeline 'p': tensor 'x': inout: file none.npy: cannot open: No such file or directory");
  }
}

TEST_CASE("pipeline tensors: a result in memory is the application's tensor, and may be missing until it runs",
          "[pipeline_request]") {
  data::Memory memory;
  memory.tensors["y"] = random_of(DType::f32, {2, 3}, 1);
  const PipelineConfig config = sum_of(input_tensor(), result_tensor("memory:y", "", DType::invalid, {}));
  CHECK(made(config, data::Contents::load, &memory)->pipeline.tensors[1].host == memory.tensors["y"]);
  const auto checked = made(config, data::Contents::check, &memory);
  CHECK(checked->pipeline.tensors[1].host == nullptr);
  CHECK(checked->pipeline.tensors[1].shape == Shape{2, 3});
  CHECK(checked->pipeline.tensors[1].dtype == DType::f32);
  const std::string who = "pipeline 'p': tensor 'y': output: found \"memory:y\"";
  for (const data::Contents contents : both_contents) {
    CHECK(told(config, contents) ==
          "invalid_argument: " + who + ", which only an application can use, expected random:SEED, zeros: or a file");
    CHECK(told(sum_of(input_tensor(), result_tensor("memory:y", "", DType::i32, {})), contents, &memory) ==
          "invalid_argument: " + who + ": float32 [2, 3], expected int32 [2, 3]");
    CHECK(told(sum_of(input_tensor(), result_tensor("memory:y", "", DType::f32, {3, 2})), contents, &memory) ==
          "invalid_argument: " + who + ": float32 [2, 3], expected float32 [3, 2]");
  }
  memory.tensors["y"] = random_of(DType::f32, {6}, 1);
  CHECK(told(config, data::Contents::check, &memory) ==
        "invalid_argument: pipeline 'p': step 'sum': tensor 'y' is float32 [6], the step writes float32 [2, 3]");
  memory.tensors.clear();
  const auto missing = made(config, data::Contents::check, &memory);
  CHECK(missing->pipeline.tensors[1].shape == Shape{2, 3});
  CHECK(told(config, data::Contents::load, &memory) ==
        "not_found: " + who + ", but the application provides no tensor of this name");
}

TEST_CASE("pipeline tensors: a reference gives its tensor a form, and must have that of its tensor",
          "[pipeline_request]") {
  const ScratchFolder folder;
  REQUIRE(data::store_tensor(folder / "ref.npy", *random_of(DType::f32, {2, 3}, 4)).ok());
  REQUIRE(data::store_tensor(folder / "other.npy", *random_of(DType::f32, {3, 2}, 4)).ok());
  REQUIRE(data::store_tensor(folder / "ref.bin", *random_of(DType::f32, {2, 3}, 4)).ok());
  const auto config_of = [&](const std::string& expect, DType dtype, Shape shape) {
    PipelineConfig config = sum_of(input_tensor(), result_tensor("y.npy", expect, dtype, std::move(shape)));
    config.job.base = folder.path();
    return config;
  };
  const std::pair<std::string, data::TensorForm> fitting[] = {
      {"ref.npy", {DType::invalid, {}}},     {"ref.npy", {DType::f32, {}}},     {"ref.npy", {DType::f32, {2, 3}}},
      {"ref.npy", {DType::invalid, {2, 3}}}, {"ref.bin", {DType::f32, {2, 3}}},
  };
  for (const auto& [expect, form] : fitting) {
    INFO(expect << " for " << numpy_name(form.dtype) << " " << to_string(form.shape));
    const auto checked = made(config_of(expect, form.dtype, form.shape), data::Contents::check);
    CHECK(checked->expected.empty());
    CHECK(checked->pipeline.tensors[1].shape == Shape{2, 3});
    CHECK(checked->pipeline.tensors[1].dtype == DType::f32);
    const auto loaded = made(config_of(expect, form.dtype, form.shape), data::Contents::load);
    REQUIRE(loaded->expected.size() == 1);
    CHECK(loaded->expected[0].tensor == "y");
    CHECK(loaded->expected[0].output.name == "y.npy");
    CHECK_FALSE(loaded->expected[0].output.tolerance.has_value());
    REQUIRE(loaded->expected[0].output.tensor != nullptr);
    CHECK(loaded->expected[0].output.tensor->as<float>()[5] == random_of(DType::f32, {2, 3}, 4)->as<float>()[5]);
  }
  for (const data::Contents contents : both_contents) {
    CHECK(
        told(config_of("other.npy", DType::f32, {2, 3}), contents) ==
        "invalid_argument: pipeline 'p': tensor 'y': expect other.npy: found float32 [3, 2], expected float32 [2, 3]");
    CHECK(told(config_of("other.npy", DType::f32, {}), contents) ==
          "invalid_argument: pipeline 'p': step 'sum': tensor 'y' is float32 [3, 2], the step writes float32 [2, 3]");
    CHECK(told(config_of("none.npy", DType::f32, {}), contents) ==
          "not_found: pipeline 'p': tensor 'y': expect: file " + (folder / "none.npy").string() +
              ": cannot open: No such file or directory");
  }
  kiln::test::write_contents(folder / "damaged.npy", "not a tensor");
  CHECK_THAT(told(config_of("damaged.npy", DType::f32, {2, 3}), data::Contents::load),
             Catch::StartsWith("corrupt: pipeline 'p': tensor 'y': expect: file "));
}

TEST_CASE("pipeline tensors: a tolerance alone is of the comparison with the references", "[pipeline_request]") {
  KernelBindingConfig result = result_tensor("y.npy");
  for (const data::Contents contents : both_contents)
    CHECK(made(sum_of(input_tensor(), result), contents)->expected.empty());
  result.tolerance = Tolerance{0.5, 0.25};
  for (const data::Contents contents : both_contents) {
    const auto request = made(sum_of(input_tensor(), result), contents);
    REQUIRE(request->expected.size() == 1);
    CHECK(request->expected[0].tensor == "y");
    CHECK(request->expected[0].output.tensor == nullptr);
    CHECK(request->expected[0].output.name == "y.npy");
  }
  KernelBindingConfig binding = step_binding(Access::read, "x");
  binding.tolerance = Tolerance{0.5, 0.25};
  CHECK(refused_pipeline(pipeline_of({input_tensor()}, kernel_step(binding))).text() ==
        "invalid_argument: pipeline 'p': step 'mine': bindings[0]: expect and tolerance: found in a step, expected in "
        "the "
        "tensor of the pipeline");
}

TEST_CASE("pipeline tensors: the weights of a step are loaded, and only checked before", "[pipeline_request]") {
  PipelineStepConfig step;
  step.job.name = "product";
  step.job.op = "gemm";
  step.job.spec = GemmSpec{.m = 2, .n = 4, .k = 3, .bias = Bias::per_channel};
  step.job.input = "x";
  step.job.weights = "random:5";
  step.job.bias = "zeros:";
  step.job.output = "y";
  const PipelineConfig config = pipeline_of({input_tensor()}, step);
  const auto checked = made(config, data::Contents::check);
  const auto loaded = made(config, data::Contents::load);
  for (const auto* const request : {&checked, &loaded}) {
    const PipelineStep& of = (*request)->pipeline.steps.at(0);
    REQUIRE(of.arguments.size() == 4);
    CHECK(of.arguments[0].tensor == "x");
    CHECK(of.arguments[1].tensor.empty());
    CHECK(of.arguments[2].tensor.empty());
    CHECK(of.arguments[3].tensor == "y");
    CHECK((of.arguments[1].value.constant != nullptr) == (request == &loaded));
    CHECK((of.arguments[2].value.constant != nullptr) == (request == &loaded));
    CHECK((*request)->pipeline.tensors.at(1).shape == Shape{2, 4});
  }
  const HostTensor& weights = loaded->pipeline.steps[0].arguments[1].value.constant->tensor();
  CHECK(weights.shape() == Shape{3, 4});
  CHECK(weights.as<float>()[11] == random_of(DType::f32, {3, 4}, 5)->as<float>()[11]);
  CHECK(loaded->pipeline.steps[0].arguments[2].value.constant->tensor().shape() == Shape{4});

  data::Memory memory;
  const auto first = made(config, data::Contents::load, &memory), second = made(config, data::Contents::load, &memory);
  CHECK(first->pipeline.steps[0].arguments[1].value.constant == second->pipeline.steps[0].arguments[1].value.constant);
  for (const data::Contents contents : both_contents) {
    PipelineConfig wrong = config;
    wrong.steps[0].job.weights = "none.npy";
    CHECK(told(wrong, contents) ==
          "not_found: pipeline 'p': step 'product': weights: file none.npy: cannot open: No such file or directory");
    wrong.steps[0].job.weights = "x";
    CHECK(told(wrong, contents) ==
          "invalid_argument: pipeline 'p': step 'product': weights: found tensor 'x', expected random:SEED, he:SEED, "
          "zeros: or a file");
    wrong = config;
    wrong.steps[0].job.bias = "random:-1";
    CHECK_THAT(told(wrong, contents),
               Catch::StartsWith("invalid_argument: pipeline 'p': step 'product': bias: found \"random:-1\""));
  }
}

TEST_CASE("pipeline tensors: local memory is no argument of a step, and uniforms are its last", "[pipeline_request]") {
  KernelBindingConfig local = step_binding(Access::read_write, "");
  local.kind = BindingKind::local;
  local.local_bytes = 64;
  KernelBindingConfig result = step_binding(Access::write, "y");
  result.dtype = DType::i16;
  result.shape = {5};
  UniformConfig gain;
  gain.uniform = {"gain", UserKernelSpec::Uniform::Type::number, {}};
  gain.numbers = {0.5};
  PipelineStepConfig with_local = kernel_step(local), with_uniform = kernel_step(step_binding(Access::read, "x"));
  with_local.job.source = "k.cl";
  with_local.job.text = "kernel void k(local int* l, global short* y) {}";
  with_uniform.job.uniforms = {gain};
  with_local.job.bindings.push_back(result);
  with_uniform.job.bindings.push_back(result);
  for (const data::Contents contents : both_contents) {
    const auto first = made(pipeline_of({}, with_local), contents);
    REQUIRE(first->pipeline.steps.at(0).arguments.size() == 1);
    CHECK(first->pipeline.steps[0].arguments[0].tensor == "y");
    const auto& spec = std::get<UserKernelSpec>(first->pipeline.steps[0].spec);
    REQUIRE(spec.bindings.size() == 2);
    CHECK(spec.bindings[0].kind == BindingKind::local);
    CHECK(spec.bindings[0].bytes == 64);
    CHECK(spec.bindings[1].bytes == 10);

    const auto second = made(pipeline_of({input_tensor()}, with_uniform), contents);
    const PipelineStep& of = second->pipeline.steps.at(0);
    REQUIRE(of.arguments.size() == 3);
    CHECK(of.arguments[0].tensor == "x");
    CHECK(of.arguments[1].tensor == "y");
    REQUIRE(of.arguments[2].value.host != nullptr);
    CHECK(of.arguments[2].value.host->bytes().size() == 8);
    CHECK(std::get<UserKernelSpec>(of.spec).uniforms.size() == 1);
    for (const auto* const request : {&first, &second}) {
      REQUIRE_FALSE((*request)->pipeline.tensors.empty());
      const PipelineTensor& y = (*request)->pipeline.tensors.back();
      CHECK(y.name == "y");
      CHECK(y.dtype == DType::i16);
      CHECK(y.shape == Shape{5});
    }
  }
}

TEST_CASE("pipeline tensors: the error about a tensor without a shape says where to add it", "[pipeline_request]") {
  KernelBindingConfig result = step_binding(Access::write, "y");
  result.dtype = DType::f32;
  const std::string who = "invalid_argument: pipeline 'p': step 'mine': bindings[0]: ";
  CHECK(refused_pipeline(pipeline_of({}, kernel_step(result))).text() ==
        who + "output 'y': shape is not set. Add shape = [N, …]");
  CHECK(refused_pipeline(pipeline_of({pipeline_tensor("y", "")}, kernel_step(result))).text() ==
        who + "output 'y': shape is not set. Add shape = [N, …] to the step or tensor");
  CHECK(refused_pipeline(pipeline_of({pipeline_tensor("y", "", DType::f32, {4})}, kernel_step(result))).ok());
  CHECK(
      refused_pipeline(
          pipeline_of({input_tensor(), pipeline_tensor("later", "")}, kernel_step(step_binding(Access::read, "x"))))
          .text() ==
      "invalid_argument: pipeline 'p': tensor 'later': shape is unknown. Add shape = [N, …], or a step that writes the "
      "tensor");
  KernelBindingConfig wrong = result;
  wrong.dtype = DType::i32;
  wrong.shape = {4};
  CHECK(refused_pipeline(pipeline_of({pipeline_tensor("y", "", DType::f32)}, kernel_step(wrong))).text() ==
        who + "tensor 'y' is float32, the step writes int32 [4]");
}

TEST_CASE("pipeline tensors: a binding may repeat the form of its tensor", "[pipeline_request]") {
  KernelBindingConfig binding = step_binding(Access::read, "x");
  binding.dtype = DType::f32;
  CHECK(refused_pipeline(pipeline_of({input_tensor()}, kernel_step(binding))).text() == Status().text());
  binding.shape = {2, 3};
  CHECK(refused_pipeline(pipeline_of({input_tensor()}, kernel_step(binding))).text() == Status().text());
  binding.dtype = DType::invalid;
  CHECK(refused_pipeline(pipeline_of({input_tensor()}, kernel_step(binding))).text() == Status().text());
}

TEST_CASE("pipeline tensors: errors name the whole way to their cause, and the pipeline once", "[pipeline_request]") {
  CHECK(refused_pipeline(pipeline_of({}, add_step("z", "z", "y"))).text() ==
        "not_found: pipeline 'p': step 'sum': input: found \"z\", expected a tensor that is declared or written by an "
        "earlier step");
  CHECK(
      refused_pipeline(pipeline_of({}, kernel_step(step_binding(Access::read, "memory:z")))).text() ==
      "invalid_argument: pipeline 'p': step 'mine': bindings[0]: input: found \"memory:z\", which only an application "
      "can use, expected random:SEED, zeros: or a file");
  PipelineStepConfig loop;
  loop.job.name = "loop";
  loop.repeat = 2;
  loop.steps = {add_step("x", "z", "y")};
  CHECK(refused_pipeline(pipeline_of({input_tensor()}, loop)).text() ==
        "not_found: pipeline 'p': step 'sum': addend: found \"z\", expected a tensor that is declared or written by an "
        "earlier step: x");
  PipelineStepConfig unknown = kernel_step(step_binding(Access::read, "x"));
  unknown.job.source = "k.txt";
  CHECK_THAT(refused_pipeline(pipeline_of({input_tensor()}, unknown)).text(),
             Catch::StartsWith("invalid_argument: pipeline 'p': step 'mine': kernel source k.txt: "));
  const Status early = refused_pipeline(
      pipeline_of({input_tensor(), pipeline_tensor("b", "", DType::f32, {2, 3})}, add_step("x", "b", "y")));
  CHECK(early.code == StatusCode::invalid_argument);
  CHECK_THAT(early.message, Catch::StartsWith("pipeline 'p': ") && Catch::Contains("'b'"));
  CHECK(early.message.find("pipeline 'p'", 1) == std::string::npos);
}

TEST_CASE("pipeline tensors: an image is shown if its tensor becomes a PNG", "[pipeline_request]") {
  struct Case {
    BindingKind kind;
    DType dtype;
    std::string output;
    bool shown;
  };
  const Case cases[] = {
      {BindingKind::image, DType::u8, "y.png", true},   {BindingKind::image, DType::u16, "y.png", true},
      {BindingKind::image, DType::f32, "y.png", false}, {BindingKind::image, DType::u8, "y.npy", false},
      {BindingKind::buffer, DType::u8, "y.png", false}, {BindingKind::image, DType::u8, "memory:y.png", false},
  };
  data::Memory memory;
  for (const Case& each : cases) {
    INFO("kind " << static_cast<int>(each.kind) << ", " << numpy_name(each.dtype) << " to " << each.output);
    KernelBindingConfig binding = step_binding(Access::write, "y");
    binding.kind = each.kind;
    binding.dtype = each.dtype;
    binding.shape = {2, 3, 4};
    binding.size = {3, 2};
    if (each.kind != BindingKind::buffer) binding.name = "picture";
    const PipelineConfig config =
        pipeline_of({result_tensor(each.output, "", each.dtype, {2, 3, 4})}, kernel_step(binding));
    const auto request = made(config, data::Contents::check, &memory);
    const auto& spec = std::get<UserKernelSpec>(request->pipeline.steps.at(0).spec);
    CHECK(spec.bindings.at(0).shown == each.shown);
    CHECK_FALSE(spec.bindings.at(0).picture);
  }
}

TEST_CASE("pipeline tensors: each result goes into its file", "[pipeline_request]") {
  const ScratchFolder folder;
  PipelineConfig config = sum_of(input_tensor("zeros:"), result_tensor("sub/y.bin"));
  config.job.base = folder.path();
  const auto request = made(config, data::Contents::load);
  for (std::byte& byte : request->pipeline.tensors[1].host->bytes()) byte = std::byte{'y'};
  auto files = data::prepare_outputs(config, *request);
  REQUIRE(files);
  REQUIRE(files->size() == 1);
  CHECK(files->front().commit().ok());
  CHECK(kiln::test::contents_of(folder / "sub/y.bin") == std::string(24, 'y'));
  config.job.bindings[1].output = "y.txt";
  const auto refused = data::prepare_outputs(config, *request);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == StatusCode::invalid_argument);
}
