// The information queries of the driver.
//
// Thread-safety: REQUIRES the device's mutex. Ownership: borrows the device.
#pragma once

#include <amdgpu_drm.h>

#include "simulator/kernel/device/device.hpp"

namespace kiln::simulator::kernel {

Answer answer_info(const Device& device, const drm_amdgpu_info& query);

}  // namespace kiln::simulator::kernel
