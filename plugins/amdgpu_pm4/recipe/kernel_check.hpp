// Whether a kernel can be dispatched as it is asked for. The hardware checks none of this: it would hang, or compute
// nonsense.
//
// Thread-safety and ownership: a function without state.
#pragma once

#include "amdgpu_pm4/recipe/recorded_dispatch.hpp"

namespace kiln::amdgpu_pm4 {

// invalid_argument: the place does not fit the kernel. unsupported: the kernel wants what is not offered. corrupt: the
// kernel's own numbers contradict each other. The message names the kernel and both sides.
Status check_kernel(const KernelCode& kernel, const DeviceShape& shape, const DispatchPlace& place);

}  // namespace kiln::amdgpu_pm4
