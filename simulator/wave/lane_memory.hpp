// LaneMemory: the parts of memory instructions that run through lanes, from the vector build that was chosen.
//
// Thread-safety and ownership: constants.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simulator/wave/op.hpp"

namespace kiln::simulator {

struct Wave;

struct LaneMemory {
  // Whether the active lanes of one half (some are) read or write `bytes` bytes each, one after the other, on word
  // boundaries; `base` is where lane 0 would. The first: addresses as global and flat instructions have them; the
  // second: DS, from an offset.
  bool (*side_by_side_global)(Wave& wave, const Op& op, unsigned half, std::uint32_t bytes, std::uint64_t& base);
  bool (*side_by_side_local)(Wave& wave, const Op& op, unsigned half, std::uint32_t bytes, std::uint32_t offset,
                             std::uint64_t& base);
  // 32 words to a row, where the mask is set.
  void (*load_row)(std::uint32_t* row, const std::byte* from, std::uint32_t mask);
};

}  // namespace kiln::simulator
