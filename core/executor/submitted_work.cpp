#include "executor/submitted_work.hpp"

#include <algorithm>
#include <string>

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
    if (!programs[i]) return invalid_argument(std::string(what) + ": number " + std::to_string(i) + " is empty");
  }
  return {};
}

Status check_device_tensor(const TensorDecl& declared, const TensorArgument& given, Use use) {
  const auto wrong = [&](const std::string& found, const std::string& expected) {
    return invalid_argument("tensor " + declared.name + ": " + found + ", expected " + expected);
  };
  if (use != Use::record) return wrong("a DeviceTensor given", "a tensor: only a recording has DeviceTensors");
  if (given.host != nullptr || given.constant != nullptr) return wrong("a DeviceTensor and another given", "one");
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
    return invalid_argument(who() + ": given as a tensor and as a Constant, expected one of them");
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
  if (submission.device == nullptr) return invalid_argument("submission: has no device");
  if (submission.plan == nullptr) return invalid_argument("submission: has no plan");
  if (Status status = validate(*submission.plan); !status.ok()) return status;
  Status status = check_against_plan(submission, use);
  return status.ok() ? status : status.within("plan " + submission.plan->variant);
}

}  // namespace kiln::executor
