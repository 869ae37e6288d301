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

// By how much a layer in fp32 may increase the relative error of a chain: of its largest result, as a multiple of
// 2^-23. REQUIRES: as above.
double chain_roundings(const KernelSpec& spec);

// As expect_conv2d() and expect_gemm() (compare.hpp), for any layer. `operands`: the tensors of the spec without its
// output, in order. unsupported: the operation is no layer.
Result<Expected> expect(const KernelSpec& spec, std::span<const HostTensor* const> operands, unsigned threads = 0);

}  // namespace kiln::reference
