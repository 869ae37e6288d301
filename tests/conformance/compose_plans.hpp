// compose: two plans made one, the output of the first being the input of the second through a scratch buffer.
//
// Thread-safety: a pure function. Ownership: values.
#pragma once

#include <kiln/kernel.hpp>

namespace kiln::conformance {

// REQUIRES: tensor 0 of each is its input, the last its only output, and the first's output has the size of the
// second's input. Tensors of the result: those of the first without its output, then those of the second without its
// input.
KernelPlan compose(const KernelPlan& first, const KernelPlan& second);

}  // namespace kiln::conformance
