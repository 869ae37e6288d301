// Generation: which instruction set and register map a simulated device has.
//
// Thread-safety and ownership: values.
#pragma once

#include <cstdint>

namespace kiln::simulator {

enum class Generation : std::uint8_t { invalid = 0, gfx10_3, gfx11 };

}  // namespace kiln::simulator
