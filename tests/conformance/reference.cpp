#include "conformance/reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

namespace kiln::conformance {
namespace {

double gamma(std::int64_t roundings) {
  const double nu = static_cast<double>(roundings) * std::ldexp(1.0, -24);
  return nu / (1 - nu);
}

struct Sum {
  double value = 0;
  double magnitude = 0;

  void add(double term) { value += term, magnitude += std::abs(term); }
};

void append(Expected& expected, const Sum& sum, std::int64_t terms, Activation activation) {
  expected.values.push_back(activation == Activation::relu ? std::max(sum.value, 0.0) : sum.value);
  // Terms below the least normal number may be flushed to zero.
  const double flushed = static_cast<double>(terms + 1) * double{std::numeric_limits<float>::min()};
  expected.bounds.push_back(gamma(terms + 1) * sum.magnitude + flushed);
}

}  // namespace

Expected expected_conv2d(const Conv2dSpec& spec, std::span<const float> input, std::span<const float> weights,
                         std::span<const float> bias) {
  Expected expected;
  const std::int64_t group_c = spec.c / spec.groups, group_k = spec.k / spec.groups;
  const std::int64_t terms = group_c * spec.r * spec.s;
  for (std::int64_t n = 0; n < spec.n; ++n) {
    for (std::int64_t k = 0; k < spec.k; ++k) {
      const std::int64_t first_c = k / group_k * group_c;
      for (std::int64_t y = 0; y < spec.out_h(); ++y) {
        for (std::int64_t x = 0; x < spec.out_w(); ++x) {
          Sum sum;
          for (std::int64_t c = 0; c < group_c; ++c) {
            for (std::int64_t r = 0; r < spec.r; ++r) {
              const std::int64_t in_y = y * spec.stride_y - spec.pad_y + r * spec.dilation_y;
              if (in_y < 0 || in_y >= spec.h) continue;
              const auto row =
                  input.subspan(static_cast<std::size_t>(((n * spec.c + first_c + c) * spec.h + in_y) * spec.w));
              const auto taps = weights.subspan(static_cast<std::size_t>(((k * group_c + c) * spec.r + r) * spec.s));
              for (std::int64_t s = 0; s < spec.s; ++s) {
                const std::int64_t in_x = x * spec.stride_x - spec.pad_x + s * spec.dilation_x;
                if (in_x < 0 || in_x >= spec.w) continue;
                sum.add(double{row[static_cast<std::size_t>(in_x)]} * double{taps[static_cast<std::size_t>(s)]});
              }
            }
          }
          if (spec.bias == Bias::per_channel) sum.add(double{bias[static_cast<std::size_t>(k)]});
          append(expected, sum, terms, spec.activation);
        }
      }
    }
  }
  return expected;
}

Expected expected_gemm(const GemmSpec& spec, std::span<const float> a, std::span<const float> b,
                       std::span<const float> bias) {
  Expected expected;
  for (std::int64_t m = 0; m < spec.m; ++m) {
    for (std::int64_t n = 0; n < spec.n; ++n) {
      Sum sum;
      for (std::int64_t k = 0; k < spec.k; ++k) {
        sum.add(double{a[static_cast<std::size_t>(m * spec.k + k)]} *
                double{b[static_cast<std::size_t>(k * spec.n + n)]});
      }
      if (spec.bias == Bias::per_channel) sum.add(double{bias[static_cast<std::size_t>(n)]});
      append(expected, sum, spec.k, spec.activation);
    }
  }
  return expected;
}

Expected expected_of(const KernelSpec& spec, const std::vector<std::vector<float>>& tensors) {
  const std::span<const float> bias =
      tensors.size() == 4 ? std::span<const float>(tensors[2]) : std::span<const float>();
  if (const auto* conv = std::get_if<Conv2dSpec>(&spec)) return expected_conv2d(*conv, tensors[0], tensors[1], bias);
  if (const auto* gemm = std::get_if<GemmSpec>(&spec)) return expected_gemm(*gemm, tensors[0], tensors[1], bias);
  return {};
}

Expected exactly(Expected expected) {
  expected.bounds.assign(expected.bounds.size(), 0.0);
  return expected;
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
