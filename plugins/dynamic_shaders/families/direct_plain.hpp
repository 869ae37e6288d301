// direct/plain: conv2d as it is defined, one output a lane; the batch is a matter of the grid, so one program serves
// every batch size.
//
// A sum too long for one pass (limits.hpp) is split by channels into passes that go on in the output.
// Thread-safety: a pure function. Ownership: the plan is a value.
#pragma once

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>

#include "dynamic_shaders/dialect/form.hpp"

namespace kiln::dynamic_shaders {

Result<KernelPlan> direct_plain(const Conv2dSpec& spec, const DeviceInfo& device, const Form& form);

}  // namespace kiln::dynamic_shaders
