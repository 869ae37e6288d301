// What a program does that a feature or a property of a device must allow, and that no capability of SPIR-V tells.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <cstdint>
#include <string>

#include "codec/spirv_module.hpp"

namespace kiln::vulkan {

enum class ModuleUse : std::uint8_t {
  local_size_id,
  shared_initializer,
  group_types,        // group operations on integers other than of 32 bits, and on floats of 16
  dynamic_broadcast,  // from an invocation that is no constant
  buffer_int64_atomics,
  shared_int64_atomics,
  subgroup_clock,
  device_clock,
  denorm_differs,       // of two widths
  denorm_differs_more,  // of 16 and 64 bits
  rounding_differs,
  rounding_differs_more,
  float_atomics,                       // 27, by float_atomic()
  float_controls = float_atomics + 27  // 15, by float_control()
};

// The uses of a program, or those that a device allows, are a bit each.
constexpr std::uint64_t bit_of(ModuleUse use, unsigned behind = 0) noexcept {
  return std::uint64_t{1} << (static_cast<unsigned>(use) + behind);
}
// place: 0 in a buffer, 1 in shared memory, 2 in an image. width: 0 of 16 bits, 1 of 32, 2 of 64. kind: 0 load, store
// and exchange, 1 add, 2 minimum and maximum.
constexpr std::uint64_t float_atomic(unsigned place, unsigned width, unsigned kind) noexcept {
  return bit_of(ModuleUse::float_atomics, (place * 3 + width) * 3 + kind);
}
// mode: an execution mode of SPIR-V, counted from DenormPreserve on. width: as above.
constexpr std::uint64_t float_control(unsigned mode, unsigned width) noexcept {
  return bit_of(ModuleUse::float_controls, mode * 3 + width);
}

std::uint64_t uses_of(const SpirvModule& module);

// The features and properties of Vulkan that allow them: "maintenance4, shaderDeviceClock".
std::string names_of(std::uint64_t uses);

}  // namespace kiln::vulkan
