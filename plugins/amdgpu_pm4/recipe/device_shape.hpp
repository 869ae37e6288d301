// DeviceShape: what the recipe needs to know of a device, and which generation a kernel's target is of.
//
// Thread-safety and ownership: values.
#pragma once

#include <cstdint>

#include "amdgpu_pm4/code_object/kernel_code.hpp"
#include "amdgpu_pm4/packets/capabilities.hpp"

namespace kiln::amdgpu_pm4 {

struct DeviceShape {
  Generation generation = Generation::invalid;
  std::uint32_t shader_engines = 0;
  std::uint32_t compute_units = 0;  // of the whole device
};

// invalid: a target whose kernels are never dispatched.
constexpr Generation generation_of(Target target) noexcept {
  switch (target) {
    case Target::gfx1030:
      return Generation::gfx10_3;
    case Target::gfx1100:
    case Target::gfx1101:
    case Target::gfx1102:
    case Target::gfx1103:
      return Generation::gfx11;
    default:
      return Generation::invalid;
  }
}

}  // namespace kiln::amdgpu_pm4
