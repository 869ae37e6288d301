// gemm/plain: a matrix product as it is defined, one element a lane, n and k as constants of the text.
//
// A sum too long for one pass (limits.hpp) is split along k into passes that go on in the output.
// Thread-safety: a pure function. Ownership: the plan is a value.
#pragma once

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>

#include "dynamic_shaders/dialect/form.hpp"

namespace kiln::dynamic_shaders {

Result<KernelPlan> gemm_plain(const GemmSpec& spec, const DeviceInfo& device, const Form& form);

}  // namespace kiln::dynamic_shaders
