// Shapes made small enough for a slow device: the same taps, strides, pads and kind of grouping on fewer pixels and
// channels.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <kiln/kernel.hpp>

namespace kiln::conformance {

double multiply_adds(const Conv2dSpec& spec) noexcept;

// The spec itself where it is within the budget; else halved in batch, then pixels, then channels, until it is or
// nothing is left to halve.
Conv2dSpec within_budget(Conv2dSpec spec, double most_multiply_adds);

}  // namespace kiln::conformance
