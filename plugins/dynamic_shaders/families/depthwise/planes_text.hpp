// The body of depthwise/planes.
//
// Thread-safety: as the writer. Ownership: nothing is kept beyond the call.
#pragma once

#include "dynamic_shaders/dialect/kernel_writer.hpp"
#include "dynamic_shaders/families/depthwise/depthwise.hpp"

namespace kiln::dynamic_shaders {

// REQUIRES: the tensors are bound; the text has set `int column, layer`.
void write_planes(const Conv2dSpec& spec, const Depthwise& choice, KernelWriter& writer);

}  // namespace kiln::dynamic_shaders
