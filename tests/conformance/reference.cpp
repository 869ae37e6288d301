#include "conformance/reference.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <sstream>
#include <utility>

#include "reference/error_bounds.hpp"
#include "reference/layers.hpp"
#include "reference/operation_reference.hpp"

namespace kiln::conformance {
namespace {

constexpr double worth_threads = 4e6;  // operations

Expected bounded(reference::Reference reference, std::int64_t products, bool has_bias) {
  const double relative = reference::direct_bound(products, has_bias);
  const double absolute = reference::underflow_allowance(products);
  Expected expected;
  expected.values = std::move(reference.value);
  for (const double magnitude : reference.magnitude) expected.bounds.push_back(relative * magnitude + absolute);
  return expected;
}

}  // namespace

Expected expected_of(const KernelSpec& spec, const std::vector<std::vector<float>>& tensors) {
  const bool has_bias = tensors.size() == 4;
  const std::span<const float> bias = has_bias ? std::span<const float>(tensors[2]) : std::span<const float>();
  const unsigned threads = flops(spec) < worth_threads ? 1 : 0;
  if (const auto* conv = std::get_if<Conv2dSpec>(&spec)) {
    Expected expected = bounded(reference::conv2d(*conv, tensors[0], tensors[1], bias, threads),
                                conv->c / conv->groups * conv->r * conv->s, has_bias);
    if (reference::winograd_applies(*conv)) {
      const auto allowed = reference::winograd_allowance(*conv, tensors[0], tensors[1], bias, threads);
      for (std::size_t i = 0; i < allowed.size(); ++i) expected.bounds[i] = std::max(expected.bounds[i], allowed[i]);
    }
    return expected;
  }
  if (const auto* gemm = std::get_if<GemmSpec>(&spec)) {
    return bounded(reference::gemm(*gemm, tensors[0], tensors[1], bias, threads), gemm->k, has_bias);
  }
  std::vector<std::shared_ptr<HostTensor>> held;
  std::vector<const HostTensor*> operands;
  for (const Operand& operand : operation_of(spec).operands(spec)) {
    if (operand.role == TensorRole::output) continue;
    held.push_back(HostTensor::create(DType::f32, operand.shape).value());
    std::ranges::copy(tensors[operands.size()], held.back()->as<float>().begin());
    operands.push_back(held.back().get());
  }
  const auto wanted = reference::expect(spec, operands, threads);
  if (!wanted) return {};
  Expected expected;
  expected.values = wanted->reference.value;
  for (const double magnitude : wanted->reference.magnitude) {
    expected.bounds.push_back(wanted->bound * magnitude + wanted->underflow);
  }
  return expected;
}

Expected exactly(Expected expected) {
  expected.bounds.assign(expected.bounds.size(), 0.0);
  return expected;
}

bool exact_in_integers(const KernelSpec& spec) noexcept {
  const auto* pool = std::get_if<Pool2dSpec>(&spec);
  if (std::holds_alternative<SoftmaxSpec>(spec) || (pool != nullptr && pool->kind == PoolKind::average)) return false;
  const auto* conv = std::get_if<Conv2dSpec>(&spec);
  return conv == nullptr || !reference::winograd_applies(*conv);
}

std::string first_difference(const Expected& expected, std::span<const float> actual) {
  std::ostringstream words;
  words.precision(9);
  if (actual.size() != expected.values.size()) {
    words << actual.size() << " elements, expected " << expected.values.size();
    return words.str();
  }
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (std::abs(double{actual[i]} - expected.values[i]) <= expected.bounds[i]) continue;
    words << "element " << i << ": " << actual[i] << ", expected " << expected.values[i] << " within "
          << expected.bounds[i];
    return words.str();
  }
  return {};
}

}  // namespace kiln::conformance
