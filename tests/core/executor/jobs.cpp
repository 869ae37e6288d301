#include "core/executor/jobs.hpp"

#include "executor/ring_executor.hpp"

#include <cstring>
#include <stdexcept>

namespace kiln::test {
namespace {

Pass pass_of(const std::string& text, std::vector<Access> access, std::vector<Binding> bindings) {
  Pass pass;
  pass.source.dialect = Dialect::glsl;
  pass.source.text = text;
  pass.source.bindings = std::move(access);
  pass.bindings = std::move(bindings);
  return pass;
}

constexpr Binding tensor(std::uint32_t index) { return {BindingSource::tensor, index}; }

Submission submission_of(const std::shared_ptr<Device>& device, KernelPlan plan, std::vector<ProgramHandle> programs,
                         std::vector<TensorArgument> tensors) {
  Submission submission;
  submission.device = device;
  submission.plan = std::make_shared<const KernelPlan>(std::move(plan));
  submission.programs = std::move(programs);
  submission.tensors = std::move(tensors);
  return submission;
}

}  // namespace

std::shared_ptr<HostTensor> tensor_of(const std::vector<float>& values) {
  auto made = HostTensor::create(DType::f32, {static_cast<std::int64_t>(values.size())});
  if (!made) throw std::runtime_error(made.error().text());
  std::memcpy((*made)->bytes().data(), values.data(), values.size() * sizeof(float));
  return *made;
}

std::vector<float> values_of(const HostTensor& tensor) {
  const auto values = tensor.as<float>();
  return {values.begin(), values.end()};
}

std::shared_ptr<const Constant> constant_of(const std::vector<float>& values) {
  return Constant::create(tensor_of(values));
}

ProgramHandle program_of(SyntheticProgram::Body body) {
  return ProgramHandle(std::make_shared<const SyntheticProgram>(std::move(body)));
}

Job add_one(const std::shared_ptr<Device>& device, const std::vector<float>& input) {
  const std::uint64_t bytes = input.size() * sizeof(float);
  KernelPlan plan;
  plan.variant = "add_one";
  plan.tensors = {{"x", TensorRole::input, bytes}, {"y", TensorRole::output, bytes}};
  plan.passes = {pass_of("y = x + 1", {Access::read, Access::write}, {tensor(0), tensor(1)})};
  const auto output = tensor_of(std::vector<float>(input.size(), -1));
  return {submission_of(device, std::move(plan), {program_of([](const Memories& m) {
                          for (std::size_t i = 0; i < m[0].size(); ++i) m[1][i] = m[0][i] + 1;
                        })},
                        {{tensor_of(input), nullptr}, {output, nullptr}}),
          output};
}

Job two_passes(const std::shared_ptr<Device>& device, const std::vector<float>& input) {
  const std::uint64_t bytes = input.size() * sizeof(float);
  KernelPlan plan;
  plan.variant = "two_passes";
  plan.tensors = {{"x", TensorRole::input, bytes}, {"y", TensorRole::output, bytes}};
  plan.scratch = {{"s", bytes}};
  const Binding scratch{BindingSource::scratch, 0};
  plan.passes = {pass_of("s = x + 1", {Access::read, Access::write}, {tensor(0), scratch}),
                 pass_of("y = s * 2", {Access::read, Access::write}, {scratch, tensor(1)})};
  const auto output = tensor_of(std::vector<float>(input.size(), -1));
  return {submission_of(device, std::move(plan),
                        {program_of([](const Memories& m) {
                           for (std::size_t i = 0; i < m[0].size(); ++i) m[1][i] = m[0][i] + 1;
                         }),
                         program_of([](const Memories& m) {
                           for (std::size_t i = 0; i < m[1].size(); ++i) m[1][i] = m[0][i] * 2;
                         })},
                        {{tensor_of(input), nullptr}, {output, nullptr}}),
          output};
}

Job in_place(const std::shared_ptr<Device>& device, const std::vector<float>& data) {
  KernelPlan plan;
  plan.variant = "in_place";
  plan.tensors = {{"x", TensorRole::inout, data.size() * sizeof(float)}};
  plan.passes = {pass_of("x = x + 1", {Access::read_write}, {tensor(0)})};
  const auto inout = tensor_of(data);
  return {submission_of(device, std::move(plan), {program_of([](const Memories& m) {
                          for (float& value : m[0]) value += 1;
                        })},
                        {{inout, nullptr}}),
          inout};
}

Job weigh(const std::shared_ptr<Device>& device, const std::vector<float>& input,
          const std::shared_ptr<const Constant>& weights) {
  const std::uint64_t bytes = input.size() * sizeof(float);
  KernelPlan plan;
  plan.variant = "weigh";
  plan.tensors = {
      {"x", TensorRole::input, bytes}, {"w", TensorRole::constant, bytes}, {"y", TensorRole::output, bytes}};
  plan.passes = {pass_of("y = x * w", {Access::read, Access::read, Access::write}, {tensor(0), tensor(1), tensor(2)})};
  const auto output = tensor_of(std::vector<float>(input.size(), -1));
  return {submission_of(device, std::move(plan), {program_of([](const Memories& m) {
                          for (std::size_t i = 0; i < m[0].size(); ++i) m[2][i] = m[0][i] * m[1][i];
                        })},
                        {{tensor_of(input), nullptr}, {nullptr, weights}, {output, nullptr}}),
          output};
}

Job add_numbers(const std::shared_ptr<Device>& device, const std::vector<float>& input,
                const std::shared_ptr<const Constant>& numbers) {
  const std::uint64_t bytes = input.size() * sizeof(float);
  KernelPlan plan;
  plan.variant = "add_numbers";
  plan.tensors = {{"x", TensorRole::input, bytes}, {"y", TensorRole::output, bytes}};
  plan.constants = {numbers};
  plan.passes = {pass_of("y = x + n", {Access::read, Access::write, Access::read},
                         {tensor(0), tensor(1), {BindingSource::constant, 0}})};
  const auto output = tensor_of(std::vector<float>(input.size(), -1));
  return {submission_of(device, std::move(plan), {program_of([](const Memories& m) {
                          for (std::size_t i = 0; i < m[0].size(); ++i) m[1][i] = m[0][i] + m[2][i];
                        })},
                        {{tensor_of(input), nullptr}, {output, nullptr}}),
          output};
}

Job weigh_packed(const std::shared_ptr<Device>& device, const std::vector<float>& input,
                 const std::shared_ptr<const Constant>& weights, std::shared_ptr<std::atomic<int>> packings,
                 const std::string& layout, const std::string& packer) {
  const std::uint64_t bytes = input.size() * sizeof(float);
  KernelPlan plan;
  plan.variant = "weigh_packed";
  plan.tensors = {
      {"x", TensorRole::input, bytes}, {"w", TensorRole::constant, bytes}, {"y", TensorRole::output, bytes}};
  plan.prepared = {{1, layout, bytes}};
  const Binding packed{BindingSource::prepared, 0};
  plan.prepare = {pass_of(packer, {Access::read, Access::write}, {tensor(1), packed})};
  plan.passes = {pass_of("y = x * p", {Access::read, Access::read, Access::write}, {tensor(0), packed, tensor(2)})};
  const auto output = tensor_of(std::vector<float>(input.size(), -1));
  Job job{submission_of(device, std::move(plan), {program_of([](const Memories& m) {
                          const std::size_t n = m[0].size();
                          for (std::size_t i = 0; i < n; ++i) m[2][i] = m[0][i] * m[1][n - 1 - i];
                        })},
                        {{tensor_of(input), nullptr}, {nullptr, weights}, {output, nullptr}}),
          output};
  job.submission.prepare_programs = {program_of([packings](const Memories& m) {
    ++*packings;
    const std::size_t n = m[0].size();
    for (std::size_t i = 0; i < n; ++i) m[1][i] = m[0][n - 1 - i];
  })};
  return job;
}

std::unique_ptr<Executor> ring(const ExecutorContext& context) {
  Registry registry;
  const Status status = register_ring_executor(registry);
  if (!status.ok()) throw std::runtime_error(status.text());
  auto made = registry.executor("ring").value()(context);
  if (!made) throw std::runtime_error(made.error().text());
  return std::move(made).value();
}

std::unique_ptr<Executor> ring(std::uint32_t in_flight, std::chrono::nanoseconds timeout, WorkCounters* counters) {
  ExecutorContext context;
  context.config.in_flight = in_flight;
  context.config.timeout = timeout;
  context.counters = counters;
  return ring(context);
}

}  // namespace kiln::test
