// user: the plan of a user's own kernel: one pass, after checks whose errors a compiler would report less clearly.
//
// Thread-safety: a pure function. Ownership: the plan is a value.
#pragma once

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>

#include <string_view>

namespace kiln::dynamic_shaders {

// invalid_argument: no #version first, no local size, an entry other than main, a constant that cannot be a #define.
// unsupported: another dialect; more bindings, larger buffers or a larger grid than the device takes.
// not_found: there is no such variant.
Result<KernelPlan> user_kernel(const UserKernelSpec& kernel, std::string_view variant, const DeviceInfo& device);

}  // namespace kiln::dynamic_shaders
