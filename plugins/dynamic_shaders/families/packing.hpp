// The packed forms of the blocked convolution: a pass that packs the activations of each job, and one that packs the
// weights once.
//
// activations, packing channels: texel [image][group][step][row][column] holds four channels of one pixel, zeros for
// channels that there are not and for the border. packing pixels: texel [image][group][channel][row][column ÷ 4] holds
// four pixels of one channel. weights: texel [group][channel][r][s][k ÷ 4 of the lane][lane] holds four output
// channels, zeros where there are none; output channel k of a group is number k % kb of lane k ÷ kb.
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include "dynamic_shaders/dialect/kernel_writer.hpp"
#include "dynamic_shaders/families/blocking.hpp"

namespace kiln::dynamic_shaders {

// REQUIRES: packing is channels or pixels. Binds input (tensor 0) and `to`.
Result<Pass> pack_activations(const ConvShape& shape, const Blocking& blocking, const DeviceInfo& device,
                              const Form& form, Binding to);

// Binds weights (tensor 1) and `to`.
Result<Pass> pack_weights(const ConvShape& shape, const Blocking& blocking, const DeviceInfo& device, const Form& form,
                          Binding to);
// Tells every parameter that the packed weights depend on.
std::string weights_layout(const ConvShape& shape, const Blocking& blocking);

}  // namespace kiln::dynamic_shaders
