#include "executor/stages/recorded_work.hpp"

#include <algorithm>
#include <unordered_map>

namespace kiln::executor {

RecordedWork::RecordedWork(std::vector<Submission> submissions)
    : submissions_(std::move(submissions)),
      variant_("recording of " + std::to_string(submissions_.size())),
      tensor_at_(submissions_.size()),
      bound_(submissions_.size()) {}

Result<std::shared_ptr<RecordedWork>> RecordedWork::create(std::vector<Submission> submissions) {
  std::shared_ptr<RecordedWork> work(new RecordedWork(std::move(submissions)));
  work->collect();
  if (Status status = work->make_buffers(*work->device()); !status.ok()) return status;
  return work;
}

// Each host tensor once, with what the submissions do to it, in their order.
void RecordedWork::collect() {
  std::unordered_map<const HostTensor*, std::size_t> known;
  for (std::size_t s = 0; s < submissions_.size(); ++s) {
    const KernelPlan& plan = *submissions_[s].plan;
    tensor_at_[s].resize(plan.tensors.size());
    for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
      const TensorRole role = plan.tensors[i].role;
      if (role == TensorRole::constant) continue;
      const auto& host = submissions_[s].tensors[i].host;
      const auto [at, is_new] = known.try_emplace(host.get(), tensors_.size());
      if (is_new) {
        Tensor& made = tensors_.emplace_back();
        made.host = host;
        made.read_first = is_uploaded(role);
      }
      Tensor& tensor = tensors_[at->second];
      tensor.read |= is_uploaded(role);
      tensor.written |= is_read_back(role);
      tensor.poisoned |= is_read_back(role) && submissions_[s].upload_outputs;
      tensor_at_[s][i] = at->second;
    }
  }
}

Status RecordedWork::make_buffers(Device& device) {
  const bool wraps = device.info().wraps_host_memory;
  for (Tensor& tensor : tensors_) {
    BufferDesc desc;
    desc.bytes = tensor.host->bytes().size();
    desc.usage = !tensor.written ? BufferUsage::upload : tensor.read ? BufferUsage::storage : BufferUsage::readback;
    if (wraps) desc.host = tensor.host->bytes();
    auto made = device.create_buffer(desc);
    if (!made) return std::move(made).error();
    tensor.buffer = std::move(made).value();
    if (wraps) continue;
    if (tensor.read_first) upload_bytes_ += desc.bytes;
    if (tensor.written) readback_bytes_ += desc.bytes;
  }
  std::vector<std::uint64_t> most;
  for (const Submission& submission : submissions_) {
    const auto& scratch = submission.plan->scratch;
    most.resize(std::max(most.size(), scratch.size()));
    for (std::size_t i = 0; i < scratch.size(); ++i) most[i] = std::max(most[i], scratch[i].bytes);
  }
  for (const std::uint64_t bytes : most) {
    BufferDesc desc;
    desc.bytes = bytes;
    desc.usage = BufferUsage::storage;
    auto made = device.create_buffer(desc);
    if (!made) return std::move(made).error();
    scratch_.push_back(std::move(made).value());
  }
  return {};
}

// The Constants are held by the submissions, so what is bound once stays where it is.
Status RecordedWork::make_constants(Device& device, ConstantStore& constants, const RunToEnd& run,
                                    std::uint64_t& packed) {
  if (!launches_.empty()) return {};
  bindings_.clear();
  for (std::size_t s = 0; s < submissions_.size(); ++s) {
    const Submission& submission = submissions_[s];
    if (Status status = bind_constants(submission, bound_[s], device, constants, run, packed); !status.ok()) {
      return status.within("submission " + std::to_string(s));
    }
    for (std::size_t i = 0; i < submission.plan->tensors.size(); ++i) {
      if (submission.plan->tensors[i].role == TensorRole::constant) continue;
      bound_[s].tensors[i] = tensors_[tensor_at_[s][i]].buffer.get();
    }
    bound_[s].scratch.clear();
    for (std::size_t i = 0; i < submission.plan->scratch.size(); ++i) bound_[s].scratch.push_back(scratch_[i].get());
    append_bindings(submission.plan->passes, bound_[s], bindings_);
  }
  std::span<Buffer* const> rest = bindings_;
  for (const Submission& submission : submissions_) {
    append_launches(submission, rest, launches_);
  }
  return {};
}

Status RecordedWork::upload(Device& device, std::uint64_t& aside_ns) {
  if (device.info().wraps_host_memory) return {};
  for (const Tensor& tensor : tensors_) {
    const std::span<const std::byte> bytes = std::as_const(*tensor.host).bytes();
    if (tensor.read_first) {
      if (Status status = copy_in(*tensor.buffer, bytes); !status.ok()) return status;
    } else if (tensor.poisoned) {
      const std::uint64_t begin = device.clock_ns();
      if (Status status = copy_in(*tensor.buffer, bytes); !status.ok()) return status;
      aside_ns += device.clock_ns() - begin;
    }
  }
  return {};
}

Status RecordedWork::readback() {
  if (device()->info().wraps_host_memory) return {};
  for (const Tensor& tensor : tensors_) {
    if (!tensor.written) continue;
    if (Status status = copy_out(*tensor.buffer, tensor.host->bytes()); !status.ok()) return status;
  }
  return {};
}

}  // namespace kiln::executor
