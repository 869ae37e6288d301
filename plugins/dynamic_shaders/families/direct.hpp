// Direct convolutions: the plain kernel, and the register-blocked one.
#pragma once

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>

#include "dynamic_shaders/dialect/kernel_writer.hpp"
#include "dynamic_shaders/families/blocking.hpp"

namespace kiln::dynamic_shaders {

// direct/plain: conv2d as it is defined, one output a lane; the batch is a matter of the grid, so one program serves
// every batch size.
//
// A sum too long for one pass (limits.hpp) is split by channels into passes that go on in the output.
// Thread-safety: a pure function. Ownership: the plan is a value.

Result<KernelPlan> direct_plain(const Conv2dSpec& spec, const DeviceInfo& device, const Form& form);

// direct/blocked: conv2d with a block of outputs in the registers of each lane: k channels by x by y pixels.
//
// A pass packs the activations into texels of four floats (blocking.hpp), the weights are packed once, the main pass
// adds up, applies bias and ReLU and writes NCHW. Each value that a lane loads serves its whole block, so loads grow
// with the block's surface and terms with its volume. Thread-safety: a pure function. Ownership: the plan is a value.

// unsupported: check(shape_of(spec), blocking, device) or check_limits() of the tensors is not ok.
Result<KernelPlan> direct_blocked(const Conv2dSpec& spec, const Blocking& blocking, const DeviceInfo& device,
                                  const Form& form);

}  // namespace kiln::dynamic_shaders
