// Where the registers of the graphics stages lie, which drivers set at the start of every stream of the graphics ring:
// kept as state, because compute work does not read them.
//
// Thread-safety and ownership: constants.
#pragma once

#include <cstdint>
#include <span>

#include "simulator/fault.hpp"

namespace kiln::simulator {

struct RegisterRange {
  std::uint32_t first = 0;  // byte offsets, both included
  std::uint32_t last = 0;
};

std::span<const RegisterRange> graphics_shader_ranges(Generation generation) noexcept;
std::span<const RegisterRange> context_ranges(Generation generation) noexcept;

}  // namespace kiln::simulator
