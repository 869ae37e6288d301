#include "reference/compare.hpp"

#include "reference/gemm.hpp"
#include "reference/rounding.hpp"
#include "reference/winograd_allowance.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

namespace kiln::reference {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Takes one output after the other and keeps the verdict.
class Judge {
 public:
  explicit Judge(double bound) { comparison_.error_bound = bound; }

  // `error` and `allowed` are absolute, `scale` what they are reported relative to.
  void finite(double error, double scale, double allowed) {
    if (std::isnan(error)) error = infinity;  // the reference is not a number, and the output is
    const bool wrong = error > allowed || std::isinf(error);
    wrong_ |= wrong;
    if (scale > 0 && std::isfinite(error)) {
      comparison_.max_rel_error = std::max(comparison_.max_rel_error, error / scale);
      comparison_.error_bound = std::max(comparison_.error_bound, allowed / scale);
    } else if (wrong) {
      comparison_.max_rel_error = infinity;
    }
    const double nearness = error == 0 ? 0 : std::isinf(error) || allowed == 0 ? infinity : error / allowed;
    if (comparison_.not_finite == 0 && nearness > worst_) {
      worst_ = nearness;
      comparison_.worst_index = index_;
    }
    ++index_;
  }

  void not_finite() {
    if (comparison_.not_finite++ == 0) comparison_.worst_index = index_;
    comparison_.max_rel_error = infinity;
    ++index_;
  }

  Comparison verdict() {
    comparison_.within = !wrong_ && comparison_.not_finite == 0;
    return comparison_;
  }

 private:
  Comparison comparison_;
  double worst_ = 0;
  bool wrong_ = false;
  std::int64_t index_ = 0;
};

Comparison judge_all(const Expected& expected, std::span<const float> output) {
  Judge judge(expected.bound);
  for (std::size_t i = 0; i < output.size(); ++i) {
    if (!std::isfinite(output[i])) {
      judge.not_finite();
      continue;
    }
    const double magnitude = expected.reference.magnitude[i];
    double allowed = expected.bound * magnitude;
    if (!expected.allowance.empty()) allowed = std::max(allowed, expected.allowance[i]);
    double error = std::abs(static_cast<double>(output[i]) - expected.reference.value[i]);
    if (magnitude > 0) error = error <= expected.underflow ? 0 : error - expected.underflow;
    judge.finite(error, magnitude, allowed);
  }
  return judge.verdict();
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
                            std::to_string(declared.size() - 1) + " (the bias as the spec says)");
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
                     " products in an output, expected fewer than 2^24: beyond, "
                     "no error bound exists for fp32");
}

std::span<const float> floats_of(const HostTensor* tensor) {
  return tensor == nullptr ? std::span<const float>() : tensor->as<float>();
}

template <class T>
Comparison compare_elements(std::span<const T> actual, std::span<const T> expected) {
  if constexpr (std::is_floating_point_v<T>) {
    constexpr double roundings = 1024;
    const double bound = 2 * gamma(roundings, sizeof(T) == sizeof(float) ? unit_f32 : unit_f64);
    double mean = 0;
    for (const T value : expected) {
      if (std::isfinite(value)) mean += std::abs(static_cast<double>(value)) / static_cast<double>(expected.size());
    }
    Judge judge(bound);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      if (!std::isfinite(actual[i])) {
        judge.not_finite();
        continue;
      }
      const double wanted = static_cast<double>(expected[i]);
      const double scale = std::max(std::abs(wanted), mean);
      judge.finite(std::abs(static_cast<double>(actual[i]) - wanted), scale, bound * scale);
    }
    return judge.verdict();
  } else {
    Judge judge(0);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const auto wanted = static_cast<double>(expected[i]);
      judge.finite(std::abs(static_cast<double>(actual[i]) - wanted), std::max(1.0, std::abs(wanted)), 0);
    }
    return judge.verdict();
  }
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

Result<Comparison> compare_expected(const Expected& expected, std::span<const float> output) {
  const std::size_t outputs = expected.reference.value.size();
  if (output.size() == outputs) return judge_all(expected, output);
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

Result<Comparison> compare_tensors(const HostTensor& actual, const HostTensor& expected) {
  if (actual.dtype() != expected.dtype() || actual.shape() != expected.shape()) {
    return invalid_argument("reference: found " + std::string(to_string(actual.dtype())) + " " +
                            to_string(actual.shape()) + ", expected " + std::string(to_string(expected.dtype())) + " " +
                            to_string(expected.shape()));
  }
  switch (actual.dtype()) {
    case DType::f32:
      return compare_elements(actual.as<float>(), expected.as<float>());
    case DType::f64:
      return compare_elements(actual.as<double>(), expected.as<double>());
    case DType::i32:
      return compare_elements(actual.as<std::int32_t>(), expected.as<std::int32_t>());
    case DType::u32:
      return compare_elements(actual.as<std::uint32_t>(), expected.as<std::uint32_t>());
    case DType::u8:
      return compare_elements(actual.as<std::uint8_t>(), expected.as<std::uint8_t>());
    case DType::invalid:
      break;
  }
  return internal_error("reference: a tensor without an element type");
}

}  // namespace kiln::reference
