#include "executor/bound_plan.hpp"

#include <cstring>

namespace kiln::executor {
namespace {

Status pack(const Submission& submission, std::size_t index, BoundPlan& bound, Device& device, ConstantStore& constants,
            const RunToEnd& run, std::uint64_t& packed) {
  const KernelPlan& plan = *submission.plan;
  const Constant& constant = *submission.tensors[plan.prepared[index].tensor].constant;
  bound.prepared[index] = constants.packed(constant, plan, index);
  if (bound.prepared[index] != nullptr) return {};

  BufferDesc desc;
  desc.bytes = plan.prepared[index].bytes;
  desc.usage = BufferUsage::storage;
  auto made = device.create_buffer(desc);
  if (!made) return std::move(made).error();
  bound.prepared[index] = made.value().get();

  std::vector<Buffer*> bindings;
  for (const Binding& binding : plan.prepare[index].bindings) bindings.push_back(bound.of(binding));
  const PassLaunch launch{submission.prepare_programs[index].get(), bindings, plan.prepare[index].grid};
  if (Status status = run({{&launch, 1}}); !status.ok()) return status;
  constants.keep_packed(constant, submission.plan, index, std::move(made).value());
  ++packed;
  return {};
}

}  // namespace

Status copy_in(Buffer& to, std::span<const std::byte> from) {
  if (from.empty()) return {};
  const std::span<std::byte> mapped = to.mapped();
  if (mapped.size() < from.size()) return to.write(0, from);
  std::memcpy(mapped.data(), from.data(), from.size());
  return {};
}

Status copy_out(Buffer& from, std::span<std::byte> to) {
  if (to.empty()) return {};
  const std::span<std::byte> mapped = from.mapped();
  if (mapped.size() < to.size()) return from.read(0, to);
  std::memcpy(to.data(), mapped.data(), to.size());
  return {};
}

Buffer* BoundPlan::of(const Binding& binding) const noexcept {
  switch (binding.source) {
    case BindingSource::tensor:
      return tensors[binding.index];
    case BindingSource::scratch:
      return scratch[binding.index];
    case BindingSource::prepared:
      return prepared[binding.index];
    case BindingSource::constant:
      return constants[binding.index];
    case BindingSource::invalid:
      break;
  }
  return nullptr;
}

void BoundPlan::clear() noexcept {
  tensors.clear();
  scratch.clear();
  prepared.clear();
  constants.clear();
}

Status bind_constants(const Submission& submission, BoundPlan& bound, Device& device, ConstantStore& constants,
                      const RunToEnd& run, std::uint64_t& packed) {
  const KernelPlan& plan = *submission.plan;
  bound.tensors.resize(plan.tensors.size());
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    if (plan.tensors[i].role != TensorRole::constant) continue;
    const auto buffer = constants.resident(submission.tensors[i].constant);
    if (!buffer) return buffer.error().within("tensor " + plan.tensors[i].name);
    bound.tensors[i] = *buffer;
  }
  bound.constants.resize(plan.constants.size());
  for (std::size_t i = 0; i < plan.constants.size(); ++i) {
    const auto buffer = constants.resident(plan.constants[i]);
    if (!buffer) return buffer.error().within("constant " + std::to_string(i) + " of plan " + plan.variant);
    bound.constants[i] = *buffer;
  }
  bound.prepared.resize(plan.prepared.size());
  for (std::size_t i = 0; i < plan.prepared.size(); ++i) {
    if (Status status = pack(submission, i, bound, device, constants, run, packed); !status.ok()) {
      return status.within("packed constant " + plan.prepared[i].layout);
    }
  }
  return {};
}

void append_bindings(const std::vector<Pass>& passes, const BoundPlan& bound, std::vector<Buffer*>& to) {
  for (const Pass& pass : passes) {
    for (const Binding& binding : pass.bindings) to.push_back(bound.of(binding));
  }
}

void append_launches(const Submission& submission, std::span<Buffer* const>& bindings, std::vector<PassLaunch>& to) {
  const std::vector<Pass>& passes = submission.plan->passes;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const std::size_t count = passes[i].bindings.size();
    PassLaunch& launch =
        to.emplace_back(PassLaunch{submission.programs[i].get(), bindings.first(count), passes[i].grid});
    if (!submission.sources.empty()) launch.sources = submission.sources[i];
    bindings = bindings.subspan(count);
  }
}

}  // namespace kiln::executor
