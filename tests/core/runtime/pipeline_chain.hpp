// Chain: a pipeline of four small convolutions, and the same by one job after another.
//
// Thread-safety: values. Ownership: a Chain shares its tensors with its pipeline.
#pragma once

#include "core/runtime/runtime_fixture.hpp"

#include <kiln/pipeline.hpp>

#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <vector>

namespace kiln::test {

inline const Shape square{1, 3, 6, 6};

inline std::shared_ptr<HostTensor> numbers(const Shape& shape, float first) {
  auto tensor = HostTensor::create(DType::f32, shape).value();
  float next = first;
  for (float& value : tensor->as<float>()) {
    value = next;
    next = next > 1 ? next - 1.9f : next + 0.37f;
  }
  return tensor;
}

inline PipelineTensor intermediate(const std::string& name, const Shape& shape = square) {
  return {name, DType::f32, shape};
}

// A convolution 3 → 3 of one size.
inline PipelineStep conv(const std::string& name, const std::string& from, const std::string& to, float weight = 0.1f) {
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
inline std::vector<float> by_jobs(Runtime& runtime, const Pipeline& pipeline, std::shared_ptr<HostTensor> value,
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

inline std::vector<float> values_in(const HostTensor& tensor) {
  return {tensor.as<float>().begin(), tensor.as<float>().end()};
}

}  // namespace kiln::test
