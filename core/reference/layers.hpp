// The references of conv2d, gemm and the simple layers.
//
// The reference convolution: a direct sum in double precision over fp32 tensors, sharing no code with any backend.
//
// Thread-safety: a pure function. Ownership: the tensors are borrowed for the call; the result is the caller's.
// Each output is one sum, over kernel row, then input channel, then kernel column, then the bias; the result is the
// same to the bit on every machine and for every number of threads.
#pragma once

#include <kiln/kernel.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace kiln::reference {

struct Reference {
  std::vector<double> value;      // bias and activation applied
  std::vector<double> magnitude;  // Σ |weight * input| + |bias|: what a rounding error is relative to
};

double activated(Activation activation, double value) noexcept;

// REQUIRES: validate(spec) is ok; the spans have the spec's sizes, bias being empty where spec.bias is none. Throws
// std::bad_alloc. threads 0: as many as the machine has cores.
Reference conv2d(const Conv2dSpec& spec, std::span<const float> input, std::span<const float> weights,
                 std::span<const float> bias, unsigned threads = 0);
// The same for an input in double precision, as an earlier reference has it.
Reference conv2d(const Conv2dSpec& spec, std::span<const double> input, std::span<const float> weights,
                 std::span<const float> bias, unsigned threads = 0);

// The reference matrix product: a direct sum in double precision over fp32 matrices, sharing no code with any backend.
//
// Thread-safety: a pure function. Ownership: the tensors are borrowed for the call; the result is the caller's.
// Each output is one sum over k in order, then the bias; the same to the bit on every machine and for every thread
// count.

// REQUIRES: validate(spec) is ok; the spans have the spec's sizes, bias being empty where spec.bias is none. Throws
// std::bad_alloc. threads 0: as many as the machine has cores.
Reference gemm(const GemmSpec& spec, std::span<const float> a, std::span<const float> b, std::span<const float> bias,
               unsigned threads = 0);
// The same for a left matrix in double precision, as an earlier reference has it.
Reference gemm(const GemmSpec& spec, std::span<const double> a, std::span<const float> b, std::span<const float> bias,
               unsigned threads = 0);

// References of pool2d, add, softmax and activation, in double precision.
//
// Thread-safety: pure functions. Ownership: inputs are borrowed for the call; the result is the caller's.
// Reference::magnitude is what the error of an output is relative to: pool2d: the maximum's or average's Σ |x| / n;
// add: |a| + |b|; activation: |x|; softmax: see softmax_bound().

// REQUIRES of each: validate(spec) is ok; the spans have the spec's sizes. Throws std::bad_alloc. threads 0: one a
// core.
Reference pool2d(const Pool2dSpec& spec, std::span<const double> input, unsigned threads = 0);
Reference add(const AddSpec& spec, std::span<const double> a, std::span<const double> b);
Reference softmax(const SoftmaxSpec& spec, std::span<const double> input);
Reference activation(const ActivationSpec& spec, std::span<const double> input);

// Bounds of an fp32 result, relative to the magnitude (error_bounds.hpp). A maximum and an activation are exact.
double pool2d_bound(const Pool2dSpec& spec) noexcept;
double add_bound() noexcept;
// With d = max x - x of an element, y its result and n the elements of a row: an exponential of -d may be off by
// (3 + 2 d) units in the last place, which is what SPIR-V allows it, and by the rounding of d; the sum by the errors of
// its terms and by gamma_n. Together that is at most the bound times y ((1 + d) + Σ y (1 + d) + 1), the magnitude.
double softmax_bound(std::int64_t elements_of_row) noexcept;

}  // namespace kiln::reference
