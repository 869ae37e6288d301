// The reference matrix product: a direct sum in double precision over fp32 matrices, sharing no code with any backend.
//
// Thread-safety: a pure function. Ownership: the tensors are borrowed for the call; the result is the caller's.
// Each output is one sum over k in order, then the bias; the same to the bit on every machine and for every thread
// count.
#pragma once

#include "reference/conv2d.hpp"

namespace kiln::reference {

// REQUIRES: validate(spec) is ok; the spans have the spec's sizes, bias being empty where spec.bias is none. Throws
// std::bad_alloc. threads 0: as many as the machine has cores.
Reference gemm(const GemmSpec& spec, std::span<const float> a, std::span<const float> b, std::span<const float> bias,
               unsigned threads = 0);
// The same for a left matrix in double precision, as an earlier reference has it.
Reference gemm(const GemmSpec& spec, std::span<const double> a, std::span<const float> b, std::span<const float> bias,
               unsigned threads = 0);

}  // namespace kiln::reference
