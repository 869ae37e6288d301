// The direct convolution and its packed forms.
//
// The packed forms of the blocked convolution: a pass that packs the activations of each job, and one that packs the
// weights once.
//
// activations, packing channels: texel [image][group][step][row][column] holds four channels of one pixel, zeros for
// channels that there are not and for the border. packing pixels: texel [image][group][channel][row][column ÷ 4] holds
// four pixels of one channel. weights: texel [group][channel][r][s][k ÷ 4 of the lane][lane] holds four output
// channels, zeros where there are none; output channel k of a group is number k % kb of lane k ÷ kb.
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include "dynamic_shaders/families/blocking.hpp"
#include "dynamic_shaders/kernel_writer.hpp"

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>

namespace kiln::dynamic_shaders {

// REQUIRES: packing is channels or pixels. Binds input (tensor 0) and `to`.
Result<Pass> pack_activations(const ConvShape& shape, const Blocking& blocking, const DeviceInfo& device,
                              const Form& form, Binding to);

// Binds weights (tensor 1) and `to`.
Result<Pass> pack_weights(const ConvShape& shape, const Blocking& blocking, const DeviceInfo& device, const Form& form,
                          Binding to);
// Tells every parameter that the packed weights depend on.
std::string weights_layout(const ConvShape& shape, const Blocking& blocking);

// Direct convolutions: the plain kernel, and the register-blocked one.

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
