#include "executor/work.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>

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
  wrappers_.clear();  // before the memory that they wrap is released
  bound_.clear();
  bindings_.clear();
  launches_.clear();
  pool_.recycle();
  submission_ = {};
}

// A device that works in the tensors' own memory changes inout tensors as soon as it starts.
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

namespace {

// A correct submission allocates nothing; messages are composed only for errors.
Status check_count(std::string_view what, std::size_t given, std::size_t expected) {
  if (given == expected) return {};
  return invalid_argument(std::to_string(given) + " " + std::string(what) + " given, expected " +
                          std::to_string(expected));
}

Status check_programs(std::string_view what, const std::vector<ProgramHandle>& programs, std::size_t expected) {
  if (Status status = check_count(what, programs.size(), expected); !status.ok()) return status;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    if (!programs[i]) return invalid_argument(std::string(what) + ": element " + std::to_string(i) + " is empty");
  }
  return {};
}

Status check_device_tensor(const TensorDecl& declared, const TensorArgument& given, Use use) {
  const auto wrong = [&](const std::string& found, const std::string& expected) {
    return invalid_argument("tensor " + declared.name + ": " + found + ", expected " + expected);
  };
  if (use != Use::record) {
    return wrong("a DeviceTensor given", "a host tensor: DeviceTensors are allowed only in a recording");
  }
  if (given.host != nullptr || given.constant != nullptr) {
    return wrong("a DeviceTensor and another argument given", "only one");
  }
  if (declared.role == TensorRole::constant) return wrong("a DeviceTensor given", "a Constant");
  const DeviceTensor& tensor = *given.device;
  const std::shared_ptr<const HostTensor> hosts[] = {tensor.before, tensor.after};
  for (const auto& host : hosts) {
    if (host == nullptr || host->bytes().size() == tensor.bytes) continue;
    return wrong("a DeviceTensor of " + std::to_string(tensor.bytes) + " bytes with a host tensor of " +
                     std::to_string(host->bytes().size()),
                 "equal sizes");
  }
  if (tensor.bytes == declared.bytes) return {};
  return wrong(std::to_string(tensor.bytes) + " bytes given", std::to_string(declared.bytes));
}

Status check_tensor(const TensorDecl& declared, const TensorArgument& given, Use use) {
  if (given.device != nullptr) return check_device_tensor(declared, given, use);
  const bool wants_constant = declared.role == TensorRole::constant;
  const auto who = [&] { return "tensor " + declared.name; };
  if (given.host != nullptr && given.constant != nullptr) {
    return invalid_argument(who() + ": both a tensor and a Constant given, expected only one");
  }
  if (wants_constant ? given.constant == nullptr : given.host == nullptr) {
    const std::string found = given.host != nullptr ? "a tensor" : given.constant != nullptr ? "a Constant" : "nothing";
    return invalid_argument(who() + ": " + found + " given, expected " + (wants_constant ? "a Constant" : "a tensor"));
  }
  const std::size_t bytes = wants_constant ? given.constant->tensor().bytes().size() : given.host->bytes().size();
  if (bytes == declared.bytes) return {};
  return invalid_argument(who() + ": " + std::to_string(bytes) + " bytes given, expected " +
                          std::to_string(declared.bytes));
}

Status check_against_plan(const Submission& submission, Use use) {
  const KernelPlan& plan = *submission.plan;
  if (Status status = check_programs("programs", submission.programs, plan.passes.size()); !status.ok()) return status;
  if (Status status = check_programs("prepare programs", submission.prepare_programs, plan.prepare.size());
      !status.ok()) {
    return status;
  }
  if (!submission.sources.empty()) {
    if (Status status = check_count("lists of sources", submission.sources.size(), plan.passes.size()); !status.ok())
      return status;
  }
  if (Status status = check_count("tensors", submission.tensors.size(), plan.tensors.size()); !status.ok())
    return status;
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    if (Status status = check_tensor(plan.tensors[i], submission.tensors[i], use); !status.ok()) return status;
  }
  return {};
}

}  // namespace

Status check(const Submission& submission, Use use) {
  if (submission.device == nullptr) return invalid_argument("submission has no device");
  if (submission.plan == nullptr) return invalid_argument("submission has no plan");
  if (Status status = validate(*submission.plan); !status.ok()) return status;
  Status status = check_against_plan(submission, use);
  return status.ok() ? status : status.within("plan " + submission.plan->variant);
}

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

// Lists each tensor once, with its uses in submission order.
void RecordedWork::collect() {
  std::unordered_map<const void*, std::size_t> known;
  for (std::size_t s = 0; s < submissions_.size(); ++s) {
    const KernelPlan& plan = *submissions_[s].plan;
    tensor_at_[s].resize(plan.tensors.size());
    groups_.push_back(plan.passes.size());
    for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
      const TensorRole role = plan.tensors[i].role;
      if (role == TensorRole::constant) continue;
      const TensorArgument& given = submissions_[s].tensors[i];
      const void* identity = given.host.get();
      if (given.device != nullptr) identity = given.device.get();
      const auto [at, is_new] = known.try_emplace(identity, tensors_.size());
      if (is_new) {
        Tensor& made = tensors_.emplace_back();
        made.host = given.host;
        made.device = given.device;
        made.read_first = is_uploaded(role);
        made.first = given.device != nullptr && given.device->before != nullptr ? 0 : s;
      }
      Tensor& tensor = tensors_[at->second];
      tensor.last = given.device != nullptr && given.device->after != nullptr ? submissions_.size() - 1 : s;
      tensor.read |= is_uploaded(role);
      tensor.written |= is_read_back(role);
      tensor.poisoned |= is_read_back(role) && submissions_[s].upload_outputs;
      tensor_at_[s][i] = at->second;
    }
  }
}

Status RecordedWork::make_host_buffer(Device& device, Tensor& tensor) {
  const bool wraps = device.info().wraps_host_memory;
  BufferDesc desc;
  desc.bytes = tensor.host->bytes().size();
  desc.usage = !tensor.written ? BufferUsage::upload : tensor.read ? BufferUsage::storage : BufferUsage::readback;
  if (wraps) desc.host = tensor.host->bytes();
  auto made = device.create_buffer(desc);
  if (!made) return std::move(made).error();
  tensor.own_buffer = std::move(made).value();
  tensor.buffer = tensor.own_buffer.get();
  if (wraps) return {};
  if (tensor.read_first) upload_bytes_ += desc.bytes;
  if (tensor.written) readback_bytes_ += desc.bytes;
  return {};
}

// Places tensors in order of size, largest first, each in the smallest block that is free during its use.
void RecordedWork::share_blocks(bool of_any_size) {
  std::vector<std::size_t> order;
  std::vector<std::int64_t> change(submissions_.size() + 1);  // of the live bytes before each submission
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].device == nullptr) continue;
    order.push_back(i);
    change[tensors_[i].first] += static_cast<std::int64_t>(tensors_[i].device->bytes);
    change[tensors_[i].last + 1] -= static_cast<std::int64_t>(tensors_[i].device->bytes);
  }
  std::int64_t live = 0;
  for (const std::int64_t step : change) {
    live += step;
    live_bytes = std::max(live_bytes, static_cast<std::uint64_t>(live));
  }
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return tensors_[a].device->bytes > tensors_[b].device->bytes; });
  for (const std::size_t i : order) {
    const Tensor& tensor = tensors_[i];
    const auto fits = [&](const Block& block) {
      if (!of_any_size && block.bytes != tensor.device->bytes) return false;
      return std::ranges::all_of(block.tensors, [&](std::size_t other) {
        return tensors_[other].last < tensor.first || tensor.last < tensors_[other].first;
      });
    };
    Block* best = nullptr;
    for (Block& block : blocks_) {
      if (fits(block) && (best == nullptr || block.bytes < best->bytes)) best = &block;
    }
    if (best == nullptr) {
      best = &blocks_.emplace_back();
      best->bytes = tensor.device->bytes;
      device_bytes += best->bytes;
    }
    best->tensors.push_back(i);
  }
}

Status RecordedWork::make_blocks(Device& device) {
  for (Block& block : blocks_) {
    BufferDesc desc;
    desc.bytes = block.bytes;
    desc.usage = BufferUsage::storage;
    auto made = device.create_buffer(desc);
    if (!made) return std::move(made).error();
    block.buffer = std::move(made).value();
    for (const std::size_t i : block.tensors) {
      Tensor& tensor = tensors_[i];
      tensor.buffer = block.buffer.get();
      if (tensor.device->before != nullptr) upload_bytes_ += tensor.device->bytes;
      if (tensor.device->after != nullptr) readback_bytes_ += tensor.device->bytes;
      if (tensor.device->bytes == block.bytes) continue;
      desc.bytes = tensor.device->bytes;
      desc.part_of = block.buffer.get();
      auto part = device.create_buffer(desc);
      if (!part) return std::move(part).error();
      tensor.own_buffer = std::move(part).value();
      tensor.buffer = tensor.own_buffer.get();
    }
  }
  return {};
}

Status RecordedWork::make_buffers(Device& device) {
  for (Tensor& tensor : tensors_) {
    if (tensor.host == nullptr) continue;
    if (Status status = make_host_buffer(device, tensor); !status.ok()) return status;
  }
  share_blocks(device.info().shares_buffers);
  if (Status status = make_blocks(device); !status.ok()) return status;
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

// The submissions hold the Constants, so bound buffers remain valid.
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
      bound_[s].tensors[i] = tensors_[tensor_at_[s][i]].buffer;
    }
    bound_[s].scratch.clear();
    for (std::size_t i = 0; i < submission.plan->scratch.size(); ++i) bound_[s].scratch.push_back(scratch_[i].get());
    append_bindings(submission.plan->passes, bound_[s], bindings_);
  }
  std::span<Buffer* const> rest = bindings_;
  for (const Submission& submission : submissions_) {
    append_launches(submission, rest, launches_);
  }
  drop_needless_waits();
  return {};
}

// A pass needs a barrier if it uses memory that was written since the last one, or writes memory that was read since.
void RecordedWork::drop_needless_waits() {
  std::unordered_map<const Buffer*, const Buffer*> memory_of;  // of parts
  for (const Block& block : blocks_) {
    for (const std::size_t i : block.tensors) memory_of.emplace(tensors_[i].buffer, block.buffer.get());
  }
  std::unordered_map<const Buffer*, bool> touched;  // since the last barrier; true: written
  std::size_t at = 0;
  for (const Submission& submission : submissions_) {
    for (const Pass& pass : submission.plan->passes) {
      PassLaunch& launch = launches_[at++];
      const auto memory = [&](std::size_t i) {
        const auto found = memory_of.find(launch.bindings[i]);
        return found == memory_of.end() ? launch.bindings[i] : found->second;
      };
      const auto writes = [&](std::size_t i) { return pass.source.bindings[i] != Access::read; };
      launch.waits = touched.empty();
      for (std::size_t i = 0; i < launch.bindings.size() && !launch.waits; ++i) {
        const auto found = touched.find(memory(i));
        launch.waits = found != touched.end() && (found->second || writes(i));
      }
      if (launch.waits) touched.clear();
      for (std::size_t i = 0; i < launch.bindings.size(); ++i) touched[memory(i)] |= writes(i);
    }
  }
}

std::span<const std::size_t> RecordedWork::groups() const noexcept {
  return measures_each ? std::span<const std::size_t>(groups_) : std::span<const std::size_t>();
}

Status RecordedWork::upload(Device& device, std::uint64_t& aside_ns) {
  measured.clear();
  const bool wraps = device.info().wraps_host_memory;
  for (const Tensor& tensor : tensors_) {
    if (tensor.device != nullptr) {
      if (tensor.device->before == nullptr) continue;
      if (Status status = copy_in(*tensor.buffer, tensor.device->before->bytes()); !status.ok()) return status;
      continue;
    }
    if (wraps) continue;
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
  const bool wraps = device()->info().wraps_host_memory;
  for (const Tensor& tensor : tensors_) {
    HostTensor* const to = tensor.device != nullptr   ? tensor.device->after.get()
                           : tensor.written && !wraps ? tensor.host.get()
                                                      : nullptr;
    if (to == nullptr) continue;
    if (Status status = copy_out(*tensor.buffer, to->bytes()); !status.ok()) return status;
  }
  return {};
}

}  // namespace kiln::executor
