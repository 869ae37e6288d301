// The passes of the depthwise families as text.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include "dynamic_shaders/families/depthwise/depthwise.hpp"
#include "dynamic_shaders/lane_map.hpp"

namespace kiln::dynamic_shaders {

// Lanes over the parts of all planes, the parts of one side by side; where planes are whole, over groups of them.
// unsupported: the device's grid is too small. REQUIRES: the choice's parameters divide the spec as check() wants it.
Result<LaneMap> depthwise_lanes(const Conv2dSpec& spec, const Depthwise& choice, const DeviceInfo& device,
                                const Form& form);

// REQUIRES: check(spec, choice, device) is ok.
Result<Pass> depthwise_planes_pass(const Conv2dSpec& spec, const Depthwise& choice, const DeviceInfo& device,
                                   const Form& form);
Result<Pass> depthwise_bands_pass(const Conv2dSpec& spec, const Depthwise& choice, const DeviceInfo& device,
                                  const Form& form);
Result<Pass> depthwise_blocked_pass(const Conv2dSpec& spec, const Depthwise& choice, const DeviceInfo& device,
                                    const Form& form);

}  // namespace kiln::dynamic_shaders
