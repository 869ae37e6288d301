// Chains of layers as an operation.
#include "contract/operation_parts.hpp"

#include <kiln/digest.hpp>

#include <algorithm>

namespace kiln {
namespace {

std::string name_of_tensor(std::size_t i) { return "tensor " + std::to_string(i); }

// The tensors of one step: roles, sizes, and that each is written before it is read. written: of all tensors.
Status check_step(const ChainSpec& spec, const ChainSpec::Step& step, std::vector<bool>& written) {
  const KernelSpec layer = kernel_spec_of(step.layer);
  if (Status status = validate(layer); !status.ok()) return status;
  const std::vector<Operand> operands = operation_of(layer).operands(layer);
  if (step.tensors.size() != operands.size()) {
    return invalid_argument(std::to_string(step.tensors.size()) + " tensors, expected " +
                            std::to_string(operands.size()));
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::uint32_t at = step.tensors[i];
    const auto wrong = [&](const std::string& why) { return invalid_argument(operands[i].name + ": " + why); };
    if (at >= spec.tensors.size()) return wrong(name_of_tensor(at) + " of " + std::to_string(spec.tensors.size()));
    const ChainSpec::Tensor& tensor = spec.tensors[at];
    if (!fits_operand(tensor.shape, operands[i].shape)) {
      return wrong(name_of_tensor(at) + " is " + to_string(tensor.shape) + ", expected " +
                   to_string(operands[i].shape));
    }
    const bool is_constant = operands[i].role == TensorRole::constant;
    if (is_constant != (tensor.role == TensorRole::constant)) {
      return wrong(name_of_tensor(at) + (is_constant ? " is no constant" : " is a constant"));
    }
    if (operands[i].role == TensorRole::output) {
      if (tensor.role == TensorRole::input || written[at]) return wrong(name_of_tensor(at) + " is written before");
      written[at] = true;
    } else if (!written[at]) {
      return wrong(name_of_tensor(at) + " is read before it is written");
    }
  }
  return {};
}

}  // namespace

Status check(const ChainSpec& spec) {
  if (spec.steps.empty()) return invalid_argument("has no steps, expected at least one");
  std::vector<bool> written;
  for (std::size_t i = 0; i < spec.tensors.size(); ++i) {
    const TensorRole role = spec.tensors[i].role;
    if (role == TensorRole::inout) return invalid_argument(name_of_tensor(i) + ": is input and output");
    written.push_back(role == TensorRole::input || role == TensorRole::constant);
  }
  for (std::size_t i = 0; i < spec.steps.size(); ++i) {
    Status status = check_step(spec, spec.steps[i], written);
    if (!status.ok()) return status.within("step " + std::to_string(i));
  }
  const auto unwritten = std::ranges::find(written, false);
  if (unwritten == written.end()) return {};
  return invalid_argument(name_of_tensor(static_cast<std::size_t>(unwritten - written.begin())) +
                          ": no step writes it");
}

std::vector<Operand> operands_of(const ChainSpec& spec) {
  std::vector<Operand> operands;
  for (std::size_t i = 0; i < spec.tensors.size(); ++i) {
    const ChainSpec::Tensor& tensor = spec.tensors[i];
    if (tensor.role != TensorRole::invalid) operands.push_back(operand(name_of_tensor(i), tensor.role, tensor.shape));
  }
  return operands;
}

double flops_of(const ChainSpec& spec) noexcept {
  double sum = 0;
  for (const ChainSpec::Step& step : spec.steps) sum += flops(kernel_spec_of(step.layer));
  return sum;
}

double saving_of(const ChainSpec& spec) noexcept {
  double most = 1;
  for (const ChainSpec::Step& step : spec.steps) {
    const KernelSpec layer = kernel_spec_of(step.layer);
    most = std::max(most, operation_of(layer).saving(layer));
  }
  return most;
}

std::string fields_of(const ChainSpec& spec) {
  FieldText fields;
  for (const ChainSpec::Tensor& tensor : spec.tensors) {
    fields.word("tensor", times(tensor.shape) + "/" + std::to_string(static_cast<int>(tensor.role)));
  }
  for (const ChainSpec::Step& step : spec.steps) {
    std::string tensors;
    for (const std::uint32_t at : step.tensors) tensors += (tensors.empty() ? "" : ",") + std::to_string(at);
    fields.word("step", tensors + " {" + canonical_text(kernel_spec_of(step.layer)) + "}");
  }
  return fields.take();
}

std::string shape_text(const ChainSpec& spec) {
  return std::to_string(spec.steps.size()) + " layers " + sha256(canonical_text(spec)).hex().substr(0, 8);
}

std::string family_of(const ChainSpec& spec) { return sha256(canonical_text(spec)).hex().substr(0, 32); }

}  // namespace kiln
