// user: the user's own kernel, handed through as a plan of one pass after checking what only a compiler would say
// badly.
//
// Thread-safety: a pure function. Ownership: the plan is a value.
#pragma once

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>

#include <string_view>

namespace kiln::dynamic_shaders {

// invalid_argument: no #version first, no local size, an entry other than main, a constant that cannot be a #define.
// unsupported: another dialect; more bindings, larger buffers or a larger grid than the device takes.
// not_found: there is no such variant. For a device in software the plan's notes tell of loops that could be too long
// for it.
Result<KernelPlan> user_kernel(const UserKernelSpec& kernel, std::string_view variant, const DeviceInfo& device);

}  // namespace kiln::dynamic_shaders
