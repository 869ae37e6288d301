// What a shader must fit into: the device's buffers and bindings, GLSL's 32-bit indices, llvmpipe's bound on loops.
//
// Thread-safety: pure functions. Ownership: none.
#pragma once

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>

#include <cstdint>
#include <vector>

namespace kiln::dynamic_shaders {

// llvmpipe leaves every loop of a shader for good once a lane has gone round 65535 times, all its loops together,
// nested ones included; the sums come out too small without an error. A pass therefore stays below, everywhere.
inline constexpr std::int64_t most_iterations = 60000;

// Bounds on what one lane keeps and on what is unrolled, beyond which no compiler met so far gains and all take
// seconds.
inline constexpr std::int64_t most_outputs = 256;
inline constexpr std::int64_t most_unrolled_terms = 8192;

// unsupported, naming the tensor or the binding that is too many or too large and what the device takes.
Status check_limits(const std::vector<TensorDecl>& tensors, const DeviceInfo& device);

// unsupported, naming the plan, where a pass binds more than the device takes.
Status check_bindings(const KernelPlan& plan, const DeviceInfo& device);

// How many passes a sum of `terms` needs whose every term costs `iterations` rounds; 0: not even one term fits a pass.
std::int64_t passes_for(std::int64_t terms, std::int64_t iterations) noexcept;

}  // namespace kiln::dynamic_shaders
