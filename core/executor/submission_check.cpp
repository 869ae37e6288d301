#include "executor/submission_check.hpp"

#include <string>

namespace kiln::executor {
namespace {

// Right submissions cost no allocation: words are put together only for a wrong one.
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
