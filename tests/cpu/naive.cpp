#include "cpu/naive.hpp"

#include <algorithm>
#include <cmath>

namespace kiln::cpu_test {
namespace {

struct Sum {
  double value = 0, magnitude = 0;
  std::int64_t terms = 0;
  void add(double product) {
    value += product;
    magnitude += std::fabs(product);
    ++terms;
  }
};

float at(std::span<const float> values, std::int64_t index) { return values[static_cast<std::size_t>(index)]; }

std::string check(Sum sum, float bias, Activation activation, double growth, float actual, std::size_t index) {
  sum.value += static_cast<double>(bias);
  sum.magnitude += std::fabs(static_cast<double>(bias));
  if (activation == Activation::relu) sum.value = std::max(sum.value, 0.0);
  constexpr double unit = 0x1p-24;
  const double bound = growth * static_cast<double>(sum.terms + 2) * unit * sum.magnitude;
  if (std::fabs(static_cast<double>(actual) - sum.value) <= bound) return {};
  return "element " + std::to_string(index) + ": " + std::to_string(actual) + ", expected " +
         std::to_string(sum.value) + " within " + std::to_string(bound);
}

std::string check_conv(const Conv2dSpec& spec, const std::vector<std::span<const float>>& in,
                       std::span<const float> out) {
  const double growth = spec.accuracy == Accuracy::winograd ? 64 : 1;
  const std::int64_t channels = spec.c / spec.groups;
  const std::int64_t features = spec.k / spec.groups;
  std::size_t index = 0;
  for (std::int64_t n = 0; n < spec.n; ++n) {
    for (std::int64_t k = 0; k < spec.k; ++k) {
      for (std::int64_t y = 0; y < spec.out_h(); ++y) {
        for (std::int64_t x = 0; x < spec.out_w(); ++x, ++index) {
          Sum sum;
          for (std::int64_t c = 0; c < channels; ++c) {
            for (std::int64_t r = 0; r < spec.r; ++r) {
              for (std::int64_t s = 0; s < spec.s; ++s) {
                const std::int64_t row = y * spec.stride_y + r * spec.dilation_y - spec.pad_y;
                const std::int64_t column = x * spec.stride_x + s * spec.dilation_x - spec.pad_x;
                if (row < 0 || row >= spec.h || column < 0 || column >= spec.w) continue;
                const std::int64_t plane = n * spec.c + k / features * channels + c;
                sum.add(static_cast<double>(at(in[0], (plane * spec.h + row) * spec.w + column)) *
                        static_cast<double>(at(in[1], ((k * channels + c) * spec.r + r) * spec.s + s)));
              }
            }
          }
          const float bias = spec.bias == Bias::per_channel ? at(in[2], k) : 0;
          std::string wrong = check(sum, bias, spec.activation, growth, out[index], index);
          if (!wrong.empty()) return wrong;
        }
      }
    }
  }
  return {};
}

std::string check_gemm(const GemmSpec& spec, const std::vector<std::span<const float>>& in,
                       std::span<const float> out) {
  std::size_t index = 0;
  for (std::int64_t m = 0; m < spec.m; ++m) {
    for (std::int64_t n = 0; n < spec.n; ++n, ++index) {
      Sum sum;
      for (std::int64_t k = 0; k < spec.k; ++k) {
        sum.add(static_cast<double>(at(in[0], m * spec.k + k)) * static_cast<double>(at(in[1], k * spec.n + n)));
      }
      const float bias = spec.bias == Bias::per_channel ? at(in[2], n) : 0;
      std::string wrong = check(sum, bias, spec.activation, 1, out[index], index);
      if (!wrong.empty()) return wrong;
    }
  }
  return {};
}

}  // namespace

std::string naive_difference(const KernelSpec& spec, const std::vector<std::span<const float>>& inputs,
                             std::span<const float> output) {
  if (const auto* conv = std::get_if<Conv2dSpec>(&spec)) return check_conv(*conv, inputs, output);
  if (const auto* gemm = std::get_if<GemmSpec>(&spec)) return check_gemm(*gemm, inputs, output);
  return "no reference for a user's kernel";
}

}  // namespace kiln::cpu_test
