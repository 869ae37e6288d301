#include "reference/operation_reference.hpp"

#include "contract/operations.hpp"
#include "reference/error_bounds.hpp"
#include "reference/layers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>

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

Reference value_of(const Pool2dSpec& spec, const LayerInputs& from, unsigned threads) {
  return pool2d(spec, from.inputs[0], threads);
}

Reference value_of(const AddSpec& spec, const LayerInputs& from, unsigned) {
  return add(spec, from.inputs[0], from.inputs[1]);
}

Reference value_of(const SoftmaxSpec& spec, const LayerInputs& from, unsigned) { return softmax(spec, from.inputs[0]); }

Reference value_of(const ActivationSpec& spec, const LayerInputs& from, unsigned) {
  return activation(spec, from.inputs[0]);
}

// The layers without constants: their references read doubles.
template <class Spec>
Result<Expected> simple_expected(const Spec& spec, double bound, std::span<const HostTensor* const> operands,
                                 unsigned threads) {
  Expected expected;
  expected.bound = bound;
  if (!std::isfinite(bound)) return unsupported("reference: no error bound exists for " + canonical_text(spec));
  expected.underflow = 2 * least_normal_f32;  // a device may flush what is smaller to zero
  const std::vector<Operand> wanted = operation_of(spec).operands(spec);
  std::vector<std::vector<double>> values;
  LayerInputs from;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i]->dtype() != DType::f32 || operands[i]->bytes().size() != wanted[i].bytes) {
      return invalid_argument("reference: " + wanted[i].name + ": " + std::string(to_string(operands[i]->dtype())) +
                              " " + to_string(operands[i]->shape()) + ", expected f32 " + to_string(wanted[i].shape));
    }
    const auto floats = operands[i]->template as<float>();
    values.emplace_back(floats.begin(), floats.end());
  }
  for (const std::vector<double>& each : values) from.inputs.emplace_back(each);
  expected.reference = value_of(spec, from, threads);
  return expected;
}

double roundings_of(const Pool2dSpec& spec) {
  return spec.kind == PoolKind::maximum ? 0 : static_cast<double>(spec.r * spec.s) + 4;
}
Result<Expected> expected_of(const Pool2dSpec& spec, std::span<const HostTensor* const> operands, unsigned threads) {
  return simple_expected(spec, pool2d_bound(spec), operands, threads);
}

double roundings_of(const AddSpec&) { return 2; }
Result<Expected> expected_of(const AddSpec& spec, std::span<const HostTensor* const> operands, unsigned threads) {
  return simple_expected(spec, add_bound(), operands, threads);
}

double roundings_of(const SoftmaxSpec& spec) { return static_cast<double>(shape_of(spec.shape).back()) + 10; }
Result<Expected> expected_of(const SoftmaxSpec& spec, std::span<const HostTensor* const> operands, unsigned threads) {
  return simple_expected(spec, softmax_bound(shape_of(spec.shape).back()), operands, threads);
}

double roundings_of(const ActivationSpec&) { return 0; }
Result<Expected> expected_of(const ActivationSpec& spec, std::span<const HostTensor* const> operands,
                             unsigned threads) {
  return simple_expected(spec, 0, operands, threads);
}

// What a probability p changes by at most if each input changes by `change`: the odds p / (1 - p) change by the factor
// exp(2 * change). Relative to the largest probability.
double carried_by(const SoftmaxSpec& spec, std::span<const double> input, double before) {
  double largest_input = 0, largest = 0, most = 0;
  for (const double value : input) largest_input = std::max(largest_input, std::abs(value));
  const double factor = std::exp(2 * before * largest_input);
  for (const double value : softmax(spec, input).value) {
    const double p = std::max(value, std::numeric_limits<double>::denorm_min());
    largest = std::max(largest, p);
    most = std::max({most, p / (p + (1 - p) / factor) - p, p - p / (p + (1 - p) * factor)});
  }
  return most / largest;
}

}  // namespace

Reference evaluate(const KernelSpec& spec, const LayerInputs& from, unsigned threads) {
  return std::visit(
      [&](const auto& held) {
        if constexpr (is_layer<std::decay_t<decltype(held)>>) return value_of(held, from, threads);
        return Reference{};
      },
      spec);
}

double chain_error(const KernelSpec& spec, const LayerInputs& from, double before) {
  const auto* softmax = std::get_if<SoftmaxSpec>(&spec);
  const double carried = softmax == nullptr ? before : carried_by(*softmax, from.inputs[0], before);
  return std::visit(
      [&](const auto& held) {
        if constexpr (is_layer<std::decay_t<decltype(held)>>) {
          return carried + roundings_of(held) * static_cast<double>(std::numeric_limits<float>::epsilon());
        }
        return before;
      },
      spec);
}

Result<Expected> expect(const KernelSpec& spec, std::span<const HostTensor* const> operands, unsigned threads) try {
  if (Status status = validate(spec); !status.ok()) return status;
  const Operation& operation = operation_of(spec);
  if (!operation.is_layer) {
    return unsupported("reference: " + std::string(operation.name) + " has no reference, expected a layer");
  }
  const std::size_t wanted = operation.operands(spec).size() - 1;
  if (operands.size() != wanted) {
    return invalid_argument("reference: " + std::to_string(operands.size()) + " operands, expected " +
                            std::to_string(wanted) + " for " + canonical_text(spec));
  }
  return std::visit(
      [&](const auto& held) -> Result<Expected> {
        if constexpr (is_layer<std::decay_t<decltype(held)>>) return expected_of(held, operands, threads);
        return internal_error("reference: the operation is not a layer");
      },
      spec);
} catch (const std::bad_alloc&) {
  return unavailable("reference: no memory for " + canonical_text(spec));
}

}  // namespace kiln::reference
