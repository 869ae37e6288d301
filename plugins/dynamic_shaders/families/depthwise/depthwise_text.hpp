// The passes of the depthwise families as text.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include "dynamic_shaders/families/depthwise/depthwise.hpp"

namespace kiln::dynamic_shaders {

// REQUIRES: check(spec, choice, device) is ok.
Result<Pass> depthwise_planes_pass(const Conv2dSpec& spec, const Depthwise& choice, const DeviceInfo& device,
                                   const Form& form);
Result<Pass> depthwise_bands_pass(const Conv2dSpec& spec, const Depthwise& choice, const DeviceInfo& device,
                                  const Form& form);
Result<Pass> depthwise_blocked_pass(const Conv2dSpec& spec, const Depthwise& choice, const DeviceInfo& device,
                                    const Form& form);

}  // namespace kiln::dynamic_shaders
