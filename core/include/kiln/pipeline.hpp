// Pipeline: several operations in order, connected by named tensors, that run on one device as one submission.
//
// Intermediate tensors stay in device memory. They share memory if they are never needed at the same time. Each step has a
// separate program from the cache.
// Thread-safety: values. Ownership: a pipeline shares its tensors with the caller.
//
//   kiln::Pipeline pipeline;
//   pipeline.tensors = {{"x", kiln::DType::f32, {1, 8, 20, 20}, kiln::Access::read, input},
//                       {"t", kiln::DType::f32, {1, 8, 20, 20}},
//                       {"y", kiln::DType::f32, {1, 8, 20, 20}, kiln::Access::write, output}};
//   pipeline.steps.push_back({"first", conv, {{"x", {}}, {"", {nullptr, weights}}, {"t", {}}}});
//   pipeline.steps.push_back({"second", conv, {{"t", {}}, {"", {nullptr, weights}}, {"y", {}}}});
//   if (kiln::Status status = kiln::validate(pipeline); !status.ok()) return status;
#pragma once

#include <kiln/run_request.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace [[gnu::visibility("default")]] kiln {

struct PipelineTensor {
  std::string name;
  DType dtype = DType::invalid;
  Shape shape;
  // read: `host` is copied to the device before a run. write: `host` gets the result. read_write: both. invalid: the
  // tensor stays on the device.
  Access access = Access::invalid;
  std::shared_ptr<HostTensor> host{};  // null if access is invalid
};

// One tensor of a step: a tensor of the pipeline by its name, or a read-only value of the step, such as weights or uniforms.
struct PipelineArgument {
  std::string tensor;
  TensorArgument value{};  // only if `tensor` is empty
};

// One operation, or a loop over steps.
struct PipelineStep {
  std::string name;
  KernelSpec spec{};
  std::vector<PipelineArgument> arguments{};  // in the order of tensors_of(spec)
  std::uint32_t repeat = 1;
  // After each round, the two tensors exchange their names, so that the next round reads the results of this round.
  std::vector<std::pair<std::string, std::string>> swap{};
  std::vector<PipelineStep> steps{};     // not empty: the step is a loop; it has no spec and no arguments
  std::optional<Tolerance> tolerance{};  // for its verification; nullopt: default of operation and type
};

struct Pipeline {
  std::string name;
  std::vector<PipelineTensor> tensors;
  std::vector<PipelineStep> steps;
};

// Checks names, types, sizes, and that a step writes each tensor before another step reads it. A step may have a null
// Constant, so that you can check a pipeline before you load its weights. invalid_argument: the error names the step, the
// tensor, and the found and expected values.
Status validate(const Pipeline& pipeline);

// final: compares the results with `expected`. If all steps are layers, also compares the results with a reference in double
// precision. steps: also runs each step as a separate job and compares it with its reference. Then compares the results of
// the pipeline with the results of the jobs.
enum class PipelineCheck : std::uint8_t { none = 0, final, steps };

// Expected contents of one result. Without output.tensor, output.tolerance applies to the comparison with the references.
struct ExpectedTensor {
  std::string tensor;
  ExpectedOutput output;
};

struct PipelineRequest {
  Pipeline pipeline;
  std::string device;        // an id; empty: [device] prefer, or the selector's choice
  std::uint32_t repeat = 1;  // number of runs; each begins with the same inputs
  PipelineCheck check = PipelineCheck::none;
  std::vector<ExpectedTensor> expected;             // of results, for `check`
  std::optional<Tolerance> tolerance;               // for results without their own; nullopt: default of the type
  bool measure_steps = false;                       // measures the device time of each step in a separate run
  std::optional<std::chrono::nanoseconds> timeout;  // per run; nullopt: [executor] timeout
  const std::atomic<bool>* stop = nullptr;          // as RunRequest::stop
  std::function<bool(std::uint32_t finished)> progress{};  // as RunRequest::progress
};

}  // namespace kiln
