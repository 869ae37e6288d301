#include "executor/slot.hpp"

#include <cstring>

namespace kiln::executor {
namespace {

constexpr bool is_uploaded(TensorRole role) noexcept { return role == TensorRole::input || role == TensorRole::inout; }
constexpr bool is_read_back(TensorRole role) noexcept {
  return role == TensorRole::output || role == TensorRole::inout;
}

constexpr BufferUsage usage_of(TensorRole role) noexcept {
  switch (role) {
    case TensorRole::input:
      return BufferUsage::upload;
    case TensorRole::output:
      return BufferUsage::readback;
    default:
      return BufferUsage::storage;  // inout: both ways, so neither kind of staging memory fits
  }
}

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

}  // namespace

void Slot::accept(Submission submission, std::uint64_t value, std::uint64_t entered_ns) {
  submission_ = std::move(submission);
  value_ = value;
  device_value_ = 0;
  entered_ns_ = entered_ns;
  started_ns_ = 0;
  packed_ = 0;
  beside_clock_ns_ = 0;
  measurement_ = {};
  failure = {};
}

Buffer* Slot::buffer_of(const Binding& binding) const noexcept {
  switch (binding.source) {
    case BindingSource::tensor:
      return tensors_[binding.index].buffer;
    case BindingSource::scratch:
      return scratch_[binding.index];
    case BindingSource::prepared:
      return prepared_[binding.index];
    case BindingSource::invalid:
      break;
  }
  return nullptr;
}

Status Slot::make_constants(Device& device, ConstantStore& constants, const RunToEnd& run) {
  started_ns_ = now_ns();
  measurement_.queue_ns = started_ns_ - entered_ns_;
  const KernelPlan& plan = *submission_.plan;
  tensors_.resize(plan.tensors.size());
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    if (plan.tensors[i].role != TensorRole::constant) continue;
    const auto buffer = constants.resident(submission_.tensors[i].constant);
    if (!buffer) return buffer.error().within("tensor " + plan.tensors[i].name);
    tensors_[i].buffer = *buffer;
  }
  prepared_.resize(plan.prepared.size());
  for (std::size_t i = 0; i < plan.prepared.size(); ++i) {
    if (Status status = pack(device, constants, i, run); !status.ok()) {
      return status.within("packed constant " + plan.prepared[i].layout);
    }
  }
  measurement_.prepared = packed_ != 0;
  measurement_.build_ns = now_ns() - started_ns_;
  return {};
}

Status Slot::pack(Device& device, ConstantStore& constants, std::size_t index, const RunToEnd& run) {
  const KernelPlan& plan = *submission_.plan;
  const Constant& constant = *submission_.tensors[plan.prepared[index].tensor].constant;
  prepared_[index] = constants.packed(constant, plan, index);
  if (prepared_[index] != nullptr) return {};

  BufferDesc desc;
  desc.bytes = plan.prepared[index].bytes;
  desc.usage = BufferUsage::storage;
  auto made = device.create_buffer(desc);
  if (!made) return std::move(made).error();
  prepared_[index] = made.value().get();

  bindings_.clear();
  for (const Binding& binding : plan.prepare[index].bindings) bindings_.push_back(buffer_of(binding));
  const PassLaunch launch{submission_.prepare_programs[index].get(), bindings_, plan.prepare[index].grid};
  if (Status status = run({{&launch, 1}}); !status.ok()) return status;
  constants.keep_packed(constant, submission_.plan, index, std::move(made).value());
  ++packed_;
  return {};
}

Status Slot::bind(Device& device, std::size_t tensor) {
  const TensorDecl& declared = submission_.plan->tensors[tensor];
  const std::span<std::byte> bytes = submission_.tensors[tensor].host->bytes();
  Bound& bound = tensors_[tensor];
  if (device.info().wraps_host_memory) {
    BufferDesc desc;
    desc.bytes = bytes.size();
    desc.usage = usage_of(declared.role);
    desc.host = bytes;
    auto made = device.create_buffer(desc);
    if (!made) return std::move(made).error();
    bound.wrapper = std::move(made).value();
    bound.buffer = bound.wrapper.get();
    return {};
  }
  const auto taken = pool_.take(device, usage_of(declared.role), bytes.size(), BufferPool::Fit::exact);
  if (!taken) return taken.error();
  bound.buffer = *taken;
  if (is_uploaded(declared.role)) return copy_in(*bound.buffer, bytes);
  if (!submission_.upload_outputs) return {};
  const std::uint64_t begin = now_ns();
  Status status = copy_in(*bound.buffer, bytes);
  beside_clock_ns_ += now_ns() - begin;
  return status;
}

Status Slot::upload(Device& device) {
  const std::uint64_t begin = now_ns();
  const KernelPlan& plan = *submission_.plan;
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    if (plan.tensors[i].role == TensorRole::constant) continue;
    if (Status status = bind(device, i); !status.ok()) return status.within("tensor " + plan.tensors[i].name);
  }
  scratch_.resize(plan.scratch.size());
  for (std::size_t i = 0; i < plan.scratch.size(); ++i) {
    const auto taken = pool_.take(device, BufferUsage::storage, plan.scratch[i].bytes, BufferPool::Fit::at_least);
    if (!taken) return taken.error().within("scratch " + plan.scratch[i].name);
    scratch_[i] = *taken;
  }
  measurement_.upload_ns = now_ns() - begin - beside_clock_ns_;
  return {};
}

Status Slot::dispatch(Device& device) {
  const KernelPlan& plan = *submission_.plan;
  bindings_.clear();
  for (const Pass& pass : plan.passes) {
    for (const Binding& binding : pass.bindings) bindings_.push_back(buffer_of(binding));
  }
  launches_.clear();
  std::span<Buffer* const> rest = bindings_;
  for (std::size_t i = 0; i < plan.passes.size(); ++i) {
    const std::size_t count = plan.passes[i].bindings.size();
    launches_.push_back({submission_.programs[i].get(), rest.first(count), plan.passes[i].grid});
    rest = rest.subspan(count);
  }
  const auto value = device.submit({launches_});
  if (!value) return value.error();
  device_value_ = *value;
  return {};
}

Status Slot::readback() {
  const std::uint64_t begin = now_ns();
  const KernelPlan& plan = *submission_.plan;
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    if (!is_read_back(plan.tensors[i].role) || tensors_[i].wrapper != nullptr) continue;
    if (Status status = copy_out(*tensors_[i].buffer, submission_.tensors[i].host->bytes()); !status.ok()) {
      return status.within("tensor " + plan.tensors[i].name);
    }
  }
  const std::uint64_t end = now_ns();
  measurement_.readback_ns = end - begin;
  measurement_.wall_ns = end - entered_ns_ - beside_clock_ns_;
  return {};
}

Measurement Slot::measured(const FenceResult& device) const {
  Measurement measurement = measurement_;
  measurement.device_ns = device.device_ns;
  measurement.variant = submission_.plan->variant;
  return measurement;
}

void Slot::release() noexcept {
  tensors_.clear();  // wrappers before the memory they wrap
  scratch_.clear();
  prepared_.clear();
  bindings_.clear();
  launches_.clear();
  pool_.recycle();
  submission_ = {};
}

void Slot::drop_buffers() noexcept { pool_.clear(); }

}  // namespace kiln::executor
