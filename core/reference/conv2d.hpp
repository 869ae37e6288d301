// The reference convolution: a direct sum in double precision over fp32 tensors, sharing no code with any backend.
//
// Thread-safety: a pure function. Ownership: the tensors are borrowed for the call; the result is the caller's.
// Each output is one sum, over kernel row, then input channel, then kernel column, then the bias; the result is the
// same to the bit on every machine and for every number of threads.
#pragma once

#include <kiln/kernel.hpp>

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

}  // namespace kiln::reference
