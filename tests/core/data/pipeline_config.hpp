// Pipelines as a configuration has them, for tests of what becomes of their keys.
// Thread-safety: any thread. Ownership: values.
#pragma once

#include <kiln/data.hpp>

#include <string>
#include <utility>
#include <vector>

namespace kiln::test {

// A tensor of a pipeline: read from a source, or, without one, only on the device.
inline KernelBindingConfig pipeline_tensor(const std::string& name, const std::string& input,
                                           DType dtype = DType::invalid, Shape shape = {}) {
  KernelBindingConfig tensor;
  tensor.label = "tensors." + name;
  tensor.name = name;
  tensor.access = input.empty() ? Access::invalid : Access::read;
  tensor.input = input;
  tensor.dtype = dtype;
  tensor.shape = std::move(shape);
  return tensor;
}

// A binding of a step. An inout names its tensor twice, as the configuration does.
inline KernelBindingConfig step_binding(Access access, const std::string& tensor) {
  KernelBindingConfig binding;
  binding.label = "bindings[0]";
  binding.access = access;
  if (access != Access::write) binding.input = tensor;
  if (access != Access::read) binding.output = tensor;
  return binding;
}

inline PipelineStepConfig add_step(const std::string& left, const std::string& right, const std::string& result) {
  PipelineStepConfig step;
  step.job.name = "sum";
  step.job.op = "add";
  step.job.spec = AddSpec{.shape = {2, 3}};
  step.job.input = left;
  step.job.addend = right;
  step.job.output = result;
  return step;
}

inline PipelineStepConfig kernel_step(KernelBindingConfig binding) {
  PipelineStepConfig step;
  step.job.name = "mine";
  step.job.op = "kernel";
  step.job.source = "k.comp";
  step.job.text = "void main() {}";
  step.job.bindings.push_back(std::move(binding));
  return step;
}

inline PipelineConfig pipeline_of(std::vector<KernelBindingConfig> tensors, PipelineStepConfig step) {
  PipelineConfig config;
  config.job.name = "p";
  config.job.op = "pipeline";
  config.job.bindings = std::move(tensors);
  config.steps.push_back(std::move(step));
  return config;
}

// Ok where the pipeline is accepted.
inline Status refused_pipeline(const PipelineConfig& config) {
  const auto request = data::make_request(config, data::Contents::check);
  return request ? Status() : request.error();
}

}  // namespace kiln::test
