// direct/blocked: conv2d with a block of outputs in the registers of each lane: k channels by x by y pixels.
//
// A pass packs the activations into texels of four floats (blocking.hpp), the weights are packed once, the main pass
// adds up, applies bias and ReLU and writes NCHW. Each value that a lane loads serves its whole block, so loads grow
// with the block's surface and terms with its volume. Thread-safety: a pure function. Ownership: the plan is a value.
#pragma once

#include "dynamic_shaders/dialect/form.hpp"
#include "dynamic_shaders/space/blocking.hpp"

namespace kiln::dynamic_shaders {

// unsupported: check(shape_of(spec), blocking, device) or check_limits() of the tensors is not ok.
Result<KernelPlan> direct_blocked(const Conv2dSpec& spec, const Blocking& blocking, const DeviceInfo& device,
                                  const Form& form);

}  // namespace kiln::dynamic_shaders
