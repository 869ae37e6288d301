// References of all layers, by their spec: what a table of operations needs of them.
//
// Thread-safety: pure functions. Ownership: inputs are borrowed for the call; results are the caller's.
// An operation that is a layer has one overload of each function in operation_reference.cpp.
#pragma once

#include "reference/compare.hpp"

#include <kiln/operation.hpp>

#include <span>
#include <vector>

namespace kiln::reference {

// The tensors that a layer reads, each kind in the order of Operation::operands.
struct LayerInputs {
  std::vector<std::span<const double>> inputs;
  std::vector<std::span<const float>> constants;
};

// The output of a layer. REQUIRES: validate(spec) is ok, the operation is a layer, sizes are those of the spec. Throws
// std::bad_alloc. threads 0: one a core.
Reference evaluate(const KernelSpec& spec, const LayerInputs& from, unsigned threads = 0);

// Returns what each result of a layer in fp32 may be off by, relative to the largest one, if its inputs are off by
// `before` relative to the largest of them. All layers but softmax count as if they made no relative error larger.
// Softmax turns an absolute error of its input into a relative one. REQUIRES: as above.
double chain_error(const KernelSpec& spec, const LayerInputs& from, double before);

// As expect_conv2d() and expect_gemm() (compare.hpp), for any layer. `operands`: the tensors of the spec without its
// output, in order. unsupported: the operation is no layer.
Result<Expected> expect(const KernelSpec& spec, std::span<const HostTensor* const> operands, unsigned threads = 0);

}  // namespace kiln::reference
