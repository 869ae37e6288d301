// The kernels of pool2d, add, softmax and activation: one pass each, in GLSL or OpenCL C.
//
// Thread-safety: pure functions. pool2d: a lane computes one output; add and activation: four elements, or one where
// their number is not a multiple of four; softmax: a row.
#pragma once

#include <string_view>

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>
#include <kiln/status.hpp>

#include "dynamic_shaders/kernel_writer.hpp"

namespace kiln::dynamic_shaders {

// The only variant: "pool2d/plain", "add/plain", "softmax/plain" or "activation/plain".
std::string_view simple_variant(const KernelSpec& spec) noexcept;  // empty: the spec is none of these layers

// unsupported: a lane would take more rounds than limits.hpp allows, or the device's limits. REQUIRES: the spec is one
// of these layers.
Result<KernelPlan> simple_layer(const KernelSpec& spec, const DeviceInfo& device, const Form& form);

}  // namespace kiln::dynamic_shaders
