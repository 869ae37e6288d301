// The plans and submissions of the executor's tests, small enough to be checked bit by bit.
//
// Thread-safety: values; none has state. Ownership: what a function answers owns its tensors and programs.
#pragma once

#include "core/executor/synthetic_device.hpp"

#include <kiln/executor.hpp>
#include <kiln/registry.hpp>

#include <memory>
#include <string>
#include <vector>

namespace kiln::test {

std::shared_ptr<HostTensor> tensor_of(const std::vector<float>& values);
std::vector<float> values_of(const HostTensor& tensor);
std::shared_ptr<const Constant> constant_of(const std::vector<float>& values);
ProgramHandle program_of(SyntheticProgram::Body body);

// A job that is about to be submitted, with what the test looks at later.
struct Job {
  Submission submission;
  std::shared_ptr<HostTensor> output;
};

// output[i] = input[i] + 1, in one pass.
Job add_one(const std::shared_ptr<Device>& device, const std::vector<float>& input);
// output[i] = (input[i] + 1) * 2: the first pass writes scratch, the second reads it.
Job two_passes(const std::shared_ptr<Device>& device, const std::vector<float>& input);
// data[i] += 1 in place.
Job in_place(const std::shared_ptr<Device>& device, const std::vector<float>& data);
// output[i] = input[i] * weights[i].
Job weigh(const std::shared_ptr<Device>& device, const std::vector<float>& input,
          const std::shared_ptr<const Constant>& weights);
// output[i] = input[i] + numbers[i], where the numbers are the plan's own constant.
Job add_numbers(const std::shared_ptr<Device>& device, const std::vector<float>& input,
                const std::shared_ptr<const Constant>& numbers);
// weigh() by way of a packed form of the weights (reversed), which a prepare pass makes. `packings` counts its runs.
Job weigh_packed(const std::shared_ptr<Device>& device, const std::vector<float>& input,
                 const std::shared_ptr<const Constant>& weights, std::shared_ptr<std::atomic<int>> packings,
                 const std::string& layout = "reversed", const std::string& packer = "reverse");

// The executor "ring" as the registry makes it.
std::unique_ptr<Executor> ring(std::uint32_t in_flight, std::chrono::nanoseconds timeout = std::chrono::seconds(10),
                               WorkCounters* counters = nullptr);
std::unique_ptr<Executor> ring(const ExecutorContext& context);

}  // namespace kiln::test
