// The main pass of direct/blocked as text.
//
// Thread-safety: a pure function. Ownership: the pass is a value.
#pragma once

#include "dynamic_shaders/dialect/kernel_writer.hpp"
#include "dynamic_shaders/families/blocking.hpp"

namespace kiln::dynamic_shaders {

struct BlockedBindings {
  Binding activations, weights, bias, output;  // bias: where the shape has one
};

// REQUIRES: check(shape, blocking, …) is ok. The grid is that of extents_of().
Pass blocked_pass(const ConvShape& shape, const Blocking& blocking, const Form& form, const BlockedBindings& bindings);

}  // namespace kiln::dynamic_shaders
