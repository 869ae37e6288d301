#include "reference/compare.hpp"

#include "reference/error_bounds.hpp"
#include "reference/layers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <string>
#include <vector>

namespace kiln::reference {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Takes one output after the other and keeps the verdict.
class Judge {
 public:
  explicit Judge(double bound) { comparison_.error_bound = bound; }

  // `error` and `allowed` are absolute, `scale` what they are reported relative to.
  void finite(double found, double expected, double error, double scale, double allowed) {
    if (std::isnan(error)) error = infinity;  // the reference is not a number, and the output is
    const bool wrong = error > allowed || std::isinf(error);
    if (scale > 0 && std::isfinite(error)) {
      comparison_.max_rel_error = std::max(comparison_.max_rel_error, error / scale);
      comparison_.error_bound = std::max(comparison_.error_bound, allowed / scale);
    } else if (wrong) {
      comparison_.max_rel_error = infinity;
    }
    const double nearness = error == 0 ? 0 : std::isinf(error) || allowed == 0 ? infinity : error / allowed;
    add({found, expected, allowed, nearness, wrong});
  }

  void not_finite(double found, double expected, double allowed) {
    comparison_.max_rel_error = infinity;
    add({found, expected, allowed, infinity, true});
    ++comparison_.not_finite;
  }

  // |found - expected| <= absolute + relative * |expected|
  void element(double found, double expected, const Tolerance& tolerance) {
    const double allowed = tolerance.absolute + tolerance.relative * std::abs(expected);
    if (found == expected || (std::isnan(found) && std::isnan(expected))) {
      return add({found, expected, allowed, 0, false});
    }
    if (!std::isfinite(found)) return not_finite(found, expected, allowed);
    if (!std::isfinite(expected)) {
      comparison_.max_rel_error = infinity;
      return add({found, expected, 0, infinity, true});
    }
    const double error = std::abs(found - expected);
    const bool wrong = !(error <= allowed);
    if (expected != 0) {
      const double beyond = std::max(0.0, error - tolerance.absolute);
      comparison_.max_rel_error = std::max(comparison_.max_rel_error, beyond / std::abs(expected));
    } else if (wrong) {
      comparison_.max_rel_error = infinity;
    }
    add({found, expected, allowed, allowed == 0 ? infinity : error / allowed, wrong});
  }

  Comparison verdict() {
    comparison_.within = comparison_.wrong == 0;
    return comparison_;
  }

 private:
  struct Judged {
    double found, expected, allowed;
    double nearness;  // error ÷ allowed
    bool wrong;
  };

  void add(const Judged& one) {
    // The first wrong one that is not finite stays the worst.
    const bool first_not_finite = one.wrong && !std::isfinite(one.found);
    if (comparison_.not_finite == 0 && (first_not_finite || one.nearness > worst_)) {
      worst_ = one.nearness;
      comparison_.worst_index = comparison_.elements;
      comparison_.worst_found = one.found;
      comparison_.worst_expected = one.expected;
      comparison_.worst_allowed = one.allowed;
    }
    ++comparison_.elements;
    comparison_.wrong += one.wrong ? 1 : 0;
  }

  Comparison comparison_;
  double worst_ = 0;
};

Comparison judge_all(const Expected& expected, std::span<const float> output) {
  Judge judge(expected.bound);
  for (std::size_t i = 0; i < output.size(); ++i) {
    const double value = expected.reference.value[i];
    const double magnitude = expected.reference.magnitude[i];
    double allowed = expected.bound * magnitude;
    if (!expected.allowance.empty()) allowed = std::max(allowed, expected.allowance[i]);
    if (!std::isfinite(output[i])) {
      judge.not_finite(static_cast<double>(output[i]), value, allowed);
      continue;
    }
    double error = std::abs(static_cast<double>(output[i]) - value);
    if (std::isfinite(value) && !std::isfinite(magnitude)) {
      allowed = 0;  // an activation's end of what is infinite or no number: 0 or 6
    } else if (magnitude > 0) {
      error = error <= expected.underflow ? 0 : error - expected.underflow;
    }
    judge.finite(static_cast<double>(output[i]), value, error, magnitude, allowed);
  }
  return judge.verdict();
}

template <class Output, class Wanted>
Comparison judge_elements(std::span<const Output> output, std::span<const Wanted> expected,
                          const Tolerance& tolerance) {
  Judge judge(tolerance.relative);
  for (std::size_t i = 0; i < output.size(); ++i) {
    judge.element(static_cast<double>(output[i]), static_cast<double>(expected[i]), tolerance);
  }
  return judge.verdict();
}

// Integers that a double does not tell apart still differ.
template <class Integer>
Comparison judge_long_integers(std::span<const Integer> output, std::span<const Integer> expected,
                               const Tolerance& tolerance) {
  Judge judge(tolerance.relative);
  for (std::size_t i = 0; i < output.size(); ++i) {
    double found = static_cast<double>(output[i]);
    const auto wanted = static_cast<double>(expected[i]);
    if (output[i] != expected[i] && found == wanted) found = std::nextafter(wanted, 0.0);
    judge.element(found, wanted, tolerance);
  }
  return judge.verdict();
}

std::vector<double> doubles_of(const HostTensor& halves) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(halves.elements()));
  for (const std::uint16_t bits : halves.as<std::uint16_t>()) values.push_back(from_half(bits));
  return values;
}

Status check_size(std::string_view name, std::int64_t found, std::uint64_t expected_bytes, DType dtype) {
  if (dtype != DType::f32) {
    return invalid_argument("reference: " + std::string(name) + ": dtype " + std::string(to_string(dtype)) +
                            ", expected f32");
  }
  const std::uint64_t expected = expected_bytes / sizeof(float);
  if (static_cast<std::uint64_t>(found) == expected) return {};
  return invalid_argument("reference: " + std::string(name) + ": " + std::to_string(found) + " elements, expected " +
                          std::to_string(expected));
}

// The tensors of a spec in its order, but its output, against what was passed.
Status check_inputs(const KernelSpec& spec, std::span<const HostTensor* const> constants) {
  if (Status status = validate(spec); !status.ok()) return status;
  const std::vector<TensorDecl> declared = tensors_of(spec);
  std::vector<const HostTensor*> passed;
  for (const HostTensor* tensor : constants) {
    if (tensor != nullptr) passed.push_back(tensor);
  }
  if (passed.size() + 1 != declared.size()) {
    return invalid_argument("reference: " + std::to_string(passed.size()) + " inputs and constants, expected " +
                            std::to_string(declared.size() - 1) + " (with a bias only if the spec has one)");
  }
  for (std::size_t i = 0; i < passed.size(); ++i) {
    Status status = check_size(declared[i].name, passed[i]->elements(), declared[i].bytes, passed[i]->dtype());
    if (!status.ok()) return status;
  }
  return {};
}

// REQUIRES: validate(spec) is ok.
Status check_output(const KernelSpec& spec, std::span<const float> output) {
  const TensorDecl declared = tensors_of(spec).back();
  return check_size(declared.name, static_cast<std::int64_t>(output.size()), declared.bytes, DType::f32);
}

Status check_bound(double bound, std::int64_t products) {
  if (std::isfinite(bound)) return {};
  return unsupported("reference: " + std::to_string(products) +
                     " products in an output, expected fewer than 2^24: for more, fp32 has no error bound");
}

std::span<const float> floats_of(const HostTensor* tensor) {
  return tensor == nullptr ? std::span<const float>() : tensor->as<float>();
}

}  // namespace

Result<Expected> expect_conv2d(const Conv2dSpec& spec, const HostTensor& input, const HostTensor& weights,
                               const HostTensor* bias, unsigned threads) {
  const HostTensor* const passed[] = {&input, &weights, bias};
  if (Status status = check_inputs(spec, passed); !status.ok()) return status;
  const std::int64_t products = spec.c / spec.groups * spec.r * spec.s;
  Expected expected;
  expected.bound = direct_bound(products, bias != nullptr);
  if (Status status = check_bound(expected.bound, products); !status.ok()) return status;
  expected.underflow = underflow_allowance(products);
  try {
    const auto in = input.as<float>();
    const auto w = weights.as<float>();
    expected.reference = conv2d(spec, in, w, floats_of(bias), threads);
    if (winograd_applies(spec)) expected.allowance = winograd_allowance(spec, in, w, floats_of(bias), threads);
    return expected;
  } catch (const std::bad_alloc&) {
    return unavailable("reference: no memory for " + canonical_text(spec));
  }
}

Result<Expected> expect_gemm(const GemmSpec& spec, const HostTensor& a, const HostTensor& b, const HostTensor* bias,
                             unsigned threads) {
  const HostTensor* const passed[] = {&a, &b, bias};
  if (Status status = check_inputs(spec, passed); !status.ok()) return status;
  Expected expected;
  expected.bound = direct_bound(spec.k, bias != nullptr);
  if (Status status = check_bound(expected.bound, spec.k); !status.ok()) return status;
  expected.underflow = underflow_allowance(spec.k);
  try {
    expected.reference = gemm(spec, a.as<float>(), b.as<float>(), floats_of(bias), threads);
    return expected;
  } catch (const std::bad_alloc&) {
    return unavailable("reference: no memory for " + canonical_text(spec));
  }
}

Result<Comparison> compare_expected(const Expected& expected, std::span<const float> output,
                                    std::optional<Tolerance> tolerance) {
  const std::size_t outputs = expected.reference.value.size();
  if (output.size() == outputs) {
    if (!tolerance) return judge_all(expected, output);
    return judge_elements(output, std::span<const double>(expected.reference.value), *tolerance);
  }
  return invalid_argument("reference: output: " + std::to_string(output.size()) + " elements, expected " +
                          std::to_string(outputs));
}

Result<Comparison> compare_conv2d(const Conv2dSpec& spec, const HostTensor& input, const HostTensor& weights,
                                  const HostTensor* bias, std::span<const float> output, unsigned threads) {
  const HostTensor* const passed[] = {&input, &weights, bias};
  if (Status status = check_inputs(spec, passed); !status.ok()) return status;
  if (Status status = check_output(spec, output); !status.ok()) return status;
  const auto expected = expect_conv2d(spec, input, weights, bias, threads);
  if (!expected) return expected.error();
  return judge_all(*expected, output);
}

Result<Comparison> compare_gemm(const GemmSpec& spec, const HostTensor& a, const HostTensor& b, const HostTensor* bias,
                                std::span<const float> output, unsigned threads) {
  const HostTensor* const passed[] = {&a, &b, bias};
  if (Status status = check_inputs(spec, passed); !status.ok()) return status;
  if (Status status = check_output(spec, output); !status.ok()) return status;
  const auto expected = expect_gemm(spec, a, b, bias, threads);
  if (!expected) return expected.error();
  return judge_all(*expected, output);
}

Tolerance default_tolerance(DType dtype) noexcept {
  constexpr double roundings = 1024;
  if (dtype == DType::f32) return {std::numeric_limits<float>::min(), 2 * gamma(roundings, unit_f32)};
  if (dtype == DType::f64) return {std::numeric_limits<double>::min(), 2 * gamma(roundings, unit_f64)};
  constexpr double half_roundings = 4, unit_f16 = 0x1p-11, least_normal_f16 = 0x1p-14;
  if (dtype == DType::f16) return {least_normal_f16, 2 * gamma(half_roundings, unit_f16)};
  return {};
}

Result<Comparison> compare_tensors(const HostTensor& actual, const HostTensor& expected,
                                   std::optional<Tolerance> given) {
  if (actual.dtype() != expected.dtype() || actual.shape() != expected.shape()) {
    return invalid_argument("reference: found " + std::string(to_string(actual.dtype())) + " " +
                            to_string(actual.shape()) + ", expected " + std::string(to_string(expected.dtype())) + " " +
                            to_string(expected.shape()));
  }
  const Tolerance tolerance = given.value_or(default_tolerance(actual.dtype()));
  switch (actual.dtype()) {
    case DType::f32:
      return judge_elements(actual.as<float>(), expected.as<float>(), tolerance);
    case DType::f64:
      return judge_elements(actual.as<double>(), expected.as<double>(), tolerance);
    case DType::i32:
      return judge_elements(actual.as<std::int32_t>(), expected.as<std::int32_t>(), tolerance);
    case DType::u32:
      return judge_elements(actual.as<std::uint32_t>(), expected.as<std::uint32_t>(), tolerance);
    case DType::u8:
    case DType::boolean:
      return judge_elements(actual.as<std::uint8_t>(), expected.as<std::uint8_t>(), tolerance);
    case DType::i8:
      return judge_elements(actual.as<std::int8_t>(), expected.as<std::int8_t>(), tolerance);
    case DType::i16:
      return judge_elements(actual.as<std::int16_t>(), expected.as<std::int16_t>(), tolerance);
    case DType::u16:
      return judge_elements(actual.as<std::uint16_t>(), expected.as<std::uint16_t>(), tolerance);
    case DType::i64:
      return judge_long_integers(actual.as<std::int64_t>(), expected.as<std::int64_t>(), tolerance);
    case DType::u64:
      return judge_long_integers(actual.as<std::uint64_t>(), expected.as<std::uint64_t>(), tolerance);
    case DType::f16:
      return judge_elements(std::span<const double>(doubles_of(actual)), std::span<const double>(doubles_of(expected)),
                            tolerance);
    case DType::invalid:
      break;
  }
  return internal_error("reference: the tensor has no element type");
}

}  // namespace kiln::reference
