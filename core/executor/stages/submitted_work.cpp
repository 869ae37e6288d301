#include "executor/stages/submitted_work.hpp"

#include <algorithm>

namespace kiln::executor {
namespace {

template <class Wanted>
std::uint64_t bytes_of(const KernelPlan& plan, const Device& device, Wanted wanted) noexcept {
  if (device.info().wraps_host_memory) return 0;
  std::uint64_t bytes = 0;
  for (const TensorDecl& tensor : plan.tensors) {
    if (wanted(tensor.role)) bytes += tensor.bytes;
  }
  return bytes;
}

}  // namespace

Status SubmittedWork::make_constants(Device& device, ConstantStore& constants, const RunToEnd& run,
                                     std::uint64_t& packed) {
  return bind_constants(submission_, bound_, device, constants, run, packed);
}

Status SubmittedWork::bind(Device& device, std::size_t tensor, std::uint64_t& aside_ns) {
  const TensorDecl& declared = submission_.plan->tensors[tensor];
  const std::span<std::byte> bytes = submission_.tensors[tensor].host->bytes();
  if (device.info().wraps_host_memory) {
    BufferDesc desc;
    desc.bytes = bytes.size();
    desc.usage = usage_of(declared.role);
    desc.host = bytes;
    auto made = device.create_buffer(desc);
    if (!made) return std::move(made).error();
    bound_.tensors[tensor] = made.value().get();
    wrappers_.push_back(std::move(made).value());
    return {};
  }
  const auto taken = pool_.take(device, usage_of(declared.role), bytes.size());
  if (!taken) return taken.error();
  bound_.tensors[tensor] = *taken;
  if (is_uploaded(declared.role)) return copy_in(**taken, bytes);
  if (!submission_.upload_outputs) return {};
  const std::uint64_t begin = device.clock_ns();
  Status status = copy_in(**taken, bytes);
  aside_ns += device.clock_ns() - begin;
  return status;
}

Status SubmittedWork::upload(Device& device, std::uint64_t& aside_ns) {
  const KernelPlan& plan = *submission_.plan;
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    if (plan.tensors[i].role == TensorRole::constant) continue;
    if (Status status = bind(device, i, aside_ns); !status.ok()) {
      return status.within("tensor " + plan.tensors[i].name);
    }
  }
  bound_.scratch.resize(plan.scratch.size());
  for (std::size_t i = 0; i < plan.scratch.size(); ++i) {
    const auto taken = pool_.take(device, BufferUsage::storage, plan.scratch[i].bytes);
    if (!taken) return taken.error().within("scratch " + plan.scratch[i].name);
    bound_.scratch[i] = *taken;
  }
  return {};
}

std::span<const PassLaunch> SubmittedWork::launches() {
  const KernelPlan& plan = *submission_.plan;
  bindings_.clear();
  launches_.clear();
  append_bindings(plan.passes, bound_, bindings_);
  std::span<Buffer* const> rest = bindings_;
  append_launches(submission_, rest, launches_);
  return launches_;
}

Status SubmittedWork::readback() {
  if (!wrappers_.empty()) return {};
  const KernelPlan& plan = *submission_.plan;
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    if (!is_read_back(plan.tensors[i].role)) continue;
    if (Status status = copy_out(*bound_.tensors[i], submission_.tensors[i].host->bytes()); !status.ok()) {
      return status.within("tensor " + plan.tensors[i].name);
    }
  }
  return {};
}

void SubmittedWork::release() noexcept {
  wrappers_.clear();  // before the memory that they wrap
  bound_.clear();
  bindings_.clear();
  launches_.clear();
  pool_.recycle();
  submission_ = {};
}

// A device that works in the tensors' own memory has changed what is read and written once it has begun.
bool SubmittedWork::may_share(const Device& device) const noexcept {
  const std::vector<TensorDecl>& tensors = submission_.plan->tensors;
  return !device.info().wraps_host_memory ||
         std::none_of(tensors.begin(), tensors.end(), [](const auto& t) { return t.role == TensorRole::inout; });
}

std::uint64_t SubmittedWork::upload_bytes(const Device& device) const noexcept {
  return bytes_of(*submission_.plan, device, is_uploaded);
}

std::uint64_t SubmittedWork::readback_bytes(const Device& device) const noexcept {
  return bytes_of(*submission_.plan, device, is_read_back);
}

}  // namespace kiln::executor
