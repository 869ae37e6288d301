// Winograd's three transforms as passes of text.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include "dynamic_shaders/families/winograd.hpp"
#include "dynamic_shaders/lane_map.hpp"

namespace kiln::dynamic_shaders {

// Which lanes of the three passes compute what. unsupported: the device's grid is too small.
Result<LaneMap> input_lanes(const Conv2dSpec& spec, const WinogradShape& shape, const DeviceInfo& device,
                            const Form& form);
Result<LaneMap> weight_lanes(const WinogradShape& shape, const Blocking& blocking, const DeviceInfo& device,
                             const Form& form);
Result<LaneMap> output_lanes(const Conv2dSpec& spec, const WinogradShape& shape, const DeviceInfo& device,
                             const Form& form);

// Four tiles of one channel a lane: input → texels [image][point][channel][quad of tiles].
Result<Pass> transform_input(const Conv2dSpec& spec, const WinogradShape& shape, View view, const DeviceInfo& device,
                             const Form& form, Binding to);
// Four output channels and one input channel a lane, all points: weights → the blocked kernel's packed weights.
Result<Pass> transform_weights(const WinogradShape& shape, const Blocking& blocking, const DeviceInfo& device,
                               const Form& form, Binding to);
// Four tiles of one channel a lane: products → output, with bias and activation.
Result<Pass> transform_output(const Conv2dSpec& spec, const WinogradShape& shape, View view, const DeviceInfo& device,
                              const Form& form, Binding from);

}  // namespace kiln::dynamic_shaders
