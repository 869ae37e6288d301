// The plainest convolution and matrix product there are, in double precision, with the error bound that any order of
// fp32 summation keeps: |out - ref| <= gamma(terms + 1) * (sum |w * x| + |bias|), gamma(n) = n * u / (1 - n * u), u =
// 2^-24.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <kiln/kernel.hpp>

#include <span>
#include <string>
#include <vector>

namespace kiln::conformance {

struct Expected {
  std::vector<double> values;
  std::vector<double> bounds;  // the largest difference allowed, per element
};

Expected expected_conv2d(const Conv2dSpec& spec, std::span<const float> input, std::span<const float> weights,
                         std::span<const float> bias);
Expected expected_gemm(const GemmSpec& spec, std::span<const float> a, std::span<const float> b,
                       std::span<const float> bias);
// From the tensors of a spec, in their order; the last is the output and is not read.
Expected expected_of(const KernelSpec& spec, const std::vector<std::vector<float>>& tensors);

// The same with bounds of nothing: for values whose sums are exact in fp32.
Expected exactly(Expected expected);

// The first element outside its bound (NaN always is), in words; empty: none.
std::string first_difference(const Expected& expected, std::span<const float> actual);

}  // namespace kiln::conformance
