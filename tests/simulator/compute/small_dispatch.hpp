// Small dispatches of the tests of the compute engine.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tests/simulator/compute/launcher.hpp"

namespace kiln::simulator::test {

using U = std::uint32_t;

inline constexpr U endpgm = 0xBFB00000, barrier = 0xBFBD0000, forever = 0xBFA0FFFF;
inline constexpr U enable = 1, partial_groups = 2, from_zero = 4, by_threads = 32, wave32 = 1U << 15;
inline constexpr U rsrc1_8_vgprs = 0x00AF0000;

// One group of 32 lanes that runs `words`.
inline DispatchState state_of(FakeMemory& memory, std::vector<U> words) {
  words.resize(words.size() + 16, endpgm);
  DispatchState state;
  state.generation = Generation::gfx11;
  state.program = memory.allocate(words, Rights::execute);
  state.rsrc1 = rsrc1_8_vgprs;
  state.num_thread = {32, 1, 1};
  state.groups = {1, 1, 1};
  state.cu_mask.fill(~0U);
  state.initiator = enable | from_zero | wave32;
  return state;
}

}  // namespace kiln::simulator::test
