#include "reference/operation_reference.hpp"

#include "reference/gemm.hpp"

namespace kiln::reference {
namespace {

std::span<const float> bias_of(const LayerInputs& from) {
  return from.constants.size() < 2 ? std::span<const float>() : from.constants[1];
}
const HostTensor* bias_of(std::span<const HostTensor* const> operands) {
  return operands.size() < 3 ? nullptr : operands[2];
}

Reference value_of(const Conv2dSpec& spec, const LayerInputs& from, unsigned threads) {
  return conv2d(spec, from.inputs[0], from.constants[0], bias_of(from), threads);
}
double roundings_of(const Conv2dSpec& spec) { return static_cast<double>(spec.c / spec.groups * spec.r * spec.s) + 2; }
Result<Expected> expected_of(const Conv2dSpec& spec, std::span<const HostTensor* const> operands, unsigned threads) {
  return expect_conv2d(spec, *operands[0], *operands[1], bias_of(operands), threads);
}

Reference value_of(const GemmSpec& spec, const LayerInputs& from, unsigned threads) {
  return gemm(spec, from.inputs[0], from.constants[0], bias_of(from), threads);
}
double roundings_of(const GemmSpec& spec) { return static_cast<double>(spec.k) + 2; }
Result<Expected> expected_of(const GemmSpec& spec, std::span<const HostTensor* const> operands, unsigned threads) {
  return expect_gemm(spec, *operands[0], *operands[1], bias_of(operands), threads);
}

Reference value_of(const UserKernelSpec&, const LayerInputs&, unsigned) { return {}; }
double roundings_of(const UserKernelSpec&) { return 0; }
Result<Expected> expected_of(const UserKernelSpec& spec, std::span<const HostTensor* const>, unsigned) {
  return unsupported("kernel " + spec.path + ": has no reference, expected a layer");
}

}  // namespace

Reference evaluate(const KernelSpec& spec, const LayerInputs& from, unsigned threads) {
  return std::visit([&](const auto& held) { return value_of(held, from, threads); }, spec);
}

double chain_roundings(const KernelSpec& spec) {
  return std::visit([](const auto& held) { return roundings_of(held); }, spec);
}

Result<Expected> expect(const KernelSpec& spec, std::span<const HostTensor* const> operands, unsigned threads) {
  if (Status status = validate(spec); !status.ok()) return status;
  const std::size_t wanted = operation_of(spec).operands(spec).size() - 1;
  if (operation_of(spec).is_layer && operands.size() != wanted) {
    return invalid_argument("reference: " + std::to_string(operands.size()) + " operands, expected " +
                            std::to_string(wanted) + " for " + canonical_text(spec));
  }
  return std::visit([&](const auto& held) { return expected_of(held, operands, threads); }, spec);
}

}  // namespace kiln::reference
