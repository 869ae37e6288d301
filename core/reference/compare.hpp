// Is an output right? Compares it with a reference, element by element, under an error bound derived beforehand.
//
// Thread-safety: pure functions. Ownership: everything is borrowed for the call.
// conv2d and gemm: an output's error is relative to its Σ |w*x| (+ |bias|), 0/0 being 0 and anything else over 0
// infinite; what underflow alone explains is not counted. Bounds: reference/error_bounds.hpp; where a Winograd
// algorithm is allowed, its bound, which is looser at some outputs than at others. Activation
// cannot widen an error. Other layers: reference/layers.hpp.
#pragma once

#include <kiln/kernel.hpp>
#include <kiln/status.hpp>
#include <kiln/tensor.hpp>

#include "reference/layers.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kiln::reference {

struct Comparison {
  double max_rel_error = 0;   // infinite where an output is not finite and should be, or the other way round
  double error_bound = 0;     // the largest relative error that any output is allowed
  bool within = false;        // no element is wrong
  std::int64_t elements = 0;  // compared
  std::int64_t wrong = 0;     // of them
  std::int64_t not_finite =
      0;  // of the wrong ones: NaN or infinite, as an output is that was never written over its poison
  // The first wrong element that is not finite, else the one nearest to its bound or furthest past it.
  std::int64_t worst_index = 0;
  double worst_found = 0, worst_expected = 0, worst_allowed = 0;  // allowed: an absolute error
};

// Each answers invalid_argument where a tensor's size is not the spec's, unsupported where no bound exists (2^24
// products or more in an output), unavailable where memory is short. bias is null where spec.bias is none. threads 0:
// one a core.
Result<Comparison> compare_conv2d(const Conv2dSpec& spec, const HostTensor& input, const HostTensor& weights,
                                  const HostTensor* bias, std::span<const float> output, unsigned threads = 0);
Result<Comparison> compare_gemm(const GemmSpec& spec, const HostTensor& a, const HostTensor& b, const HostTensor* bias,
                                std::span<const float> output, unsigned threads = 0);

// What outputs of one spec on the same inputs are compared with: made once, since that takes longer than all the rest.
struct Expected {
  Reference reference;
  std::vector<double> allowance;  // absolute, one an output, where it exceeds the direct sum's bound; or empty
  double bound = 0;
  double underflow = 0;  // absolute: what is not counted
};

// Answer the errors of the above but that of the output's size, which compare_expected() answers.
Result<Expected> expect_conv2d(const Conv2dSpec& spec, const HostTensor& input, const HostTensor& weights,
                               const HostTensor* bias, unsigned threads = 0);
Result<Expected> expect_gemm(const GemmSpec& spec, const HostTensor& a, const HostTensor& b, const HostTensor* bias,
                             unsigned threads = 0);
// tolerance: replaces the derived bounds; each element is then judged as by compare_tensors().
Result<Comparison> compare_expected(const Expected& expected, std::span<const float> output,
                                    std::optional<Tolerance> tolerance = {});

// What an output of a type may differ by where nobody gives a tolerance. Floating point: relative 2 gamma_1024, as both
// sides may each have gone through 1024 rounded operations in a row; absolute the smallest normal number, since devices
// may flush what is smaller to zero. Integers: nothing.
Tolerance default_tolerance(DType dtype) noexcept;

// For a user's kernel, whose operations are unknown. Element by element: |got - want| <= absolute + relative * |want|.
// Equal infinities are equal, and a NaN is equal to a NaN; either beside anything else is wrong. max_rel_error is the
// largest |got - want| / |want| beyond what `absolute` allows. invalid_argument where dtype or shape differ.
Result<Comparison> compare_tensors(const HostTensor& actual, const HostTensor& expected,
                                   std::optional<Tolerance> tolerance = {});

}  // namespace kiln::reference
