// What a steady stream of jobs allocates where the tensors' own memory is wrapped.
#include <catch2/catch.hpp>
#include <stdexcept>

#include "cpu/cpu_under_test.hpp"
#include "executor/ring_executor.hpp"
#include "support/allocation_count.hpp"

namespace kiln::cpu_test {
namespace {

constexpr std::size_t steady_jobs = 1000;

Submission submission_of(const OpenedCpu& cpu, const KernelSpec& spec) {
  Submission submission;
  submission.device = cpu.device;
  KernelPlan plan = cpu.generator->generate(spec, cpu.device->info(), Dialect::library).value();
  plan.variant = "library";  // a name that a string has room for
  for (const TensorDecl& declared : plan.tensors) {
    auto tensor = HostTensor::create(DType::f32, {static_cast<std::int64_t>(declared.bytes / sizeof(float))}).value();
    const bool constant = declared.role == TensorRole::constant;
    submission.tensors.push_back({constant ? nullptr : tensor, constant ? Constant::create(tensor) : nullptr});
  }
  for (const Pass& pass : plan.passes) {
    submission.programs.emplace_back(std::shared_ptr<const Program>(cpu.device->build(pass.source).value()));
  }
  submission.plan = std::make_shared<const KernelPlan>(std::move(plan));
  return submission;
}

// The submission's pass on the device itself, on buffers that stay.
class Direct {
 public:
  Direct(Device& device, const Submission& job) : device_(device), program_(job.programs[0].get()) {
    for (std::size_t i = 0; i < job.tensors.size(); ++i) {
      const HostTensor& tensor =
          job.tensors[i].host != nullptr ? *job.tensors[i].host : job.tensors[i].constant->tensor();
      const std::span<const std::byte> bytes = tensor.bytes();
      BufferDesc desc;
      desc.bytes = bytes.size();
      desc.usage = job.tensors[i].constant != nullptr ? BufferUsage::constant : BufferUsage::upload;
      auto buffer = device.create_buffer(desc).value();
      if (Status status = buffer->write(0, bytes); !status.ok()) throw std::runtime_error(status.text());
      bindings_.push_back(buffer.get());
      buffers_.push_back(std::move(buffer));
    }
  }
  bool run() {
    const PassLaunch launch{program_, bindings_, {1, 1, 1}};
    const auto value = device_.submit({{&launch, 1}});
    return value && device_.wait(*value, Deadline::never());
  }

 private:
  Device& device_;
  const Program* program_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<Buffer*> bindings_;
};

// Calls of operator new in so many runs, after as many that are not counted: which of several ways is fastest is found
// out in the first ones.
template <class Run>
std::uint64_t allocations_of(Run run) {
  std::size_t failed = 0;
  for (std::size_t i = 0; i < 50; ++i) failed += run(i) ? 0 : 1;
  const std::uint64_t before = support::allocation_count();
  for (std::size_t i = 0; i < steady_jobs; ++i) failed += run(50 + i) ? 0 : 1;
  const std::uint64_t allocated = support::allocation_count() - before;
  CHECK(failed == 0);
  return allocated;
}

}  // namespace

TEST_CASE("a steady job on wrapped memory allocates its two wrappers beyond what the library does by itself",
          "[unsanitized]") {
  if (!support::counts_allocations) {
    WARN("skipped: a sanitizer has an operator new of its own");
    return;
  }
  OpenedCpu& cpu = shared_cpu();
  Conv2dSpec conv;
  conv.c = 16, conv.h = 14, conv.w = 13, conv.k = 24, conv.r = 3, conv.s = 3;
  conv.pad_y = conv.pad_x = 1;
  ExecutorContext context;
  context.config.in_flight = 1;
  const auto executor = RingExecutor::create(context).value();
  const Submission job = submission_of(cpu, conv);
  Direct direct(*cpu.device, job);
  const std::uint64_t by_itself = allocations_of([&](std::size_t) { return direct.run(); });

  std::vector<Submission> made(50 + steady_jobs, job);
  const std::uint64_t by_executor = allocations_of([&](std::size_t i) {
    return executor->wait(executor->submit(std::move(made[i])).value(), Deadline::never()).has_value();
  });
  CHECK(by_executor == by_itself + 2 * steady_jobs);
}

}  // namespace kiln::cpu_test
