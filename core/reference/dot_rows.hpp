// dot_rows: the inner loop of every reference: four weighted sums of shifted rows at once, in double precision.
//
// Thread-safety: a pure function over its arguments. Ownership: everything is borrowed for the call.
// Products of two fp32 values are exact in double, so the sums depend on the order of the taps and on nothing else: not
// on the vector width that the machine offers, not on fused multiply-add, not on how work is spread over threads.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kiln::reference {

inline constexpr std::int64_t dot_lanes = 8;  // elements a block
inline constexpr std::int64_t dot_rows_at_once = 4;

struct DotRows {
  const double* planes = nullptr;
  std::int64_t origin = 0;                // added to each offset
  const std::int64_t* offsets = nullptr;  // one a tap: where its row starts
  const double* weights = nullptr;        // dot_rows_at_once a tap
  std::size_t taps = 0;
  std::size_t blocks = 0;  // of dot_lanes elements
  // Row j goes to sums + j * blocks * dot_lanes, likewise magnitudes.
  double* sums = nullptr;        // Σ over taps, in order, of weight * element
  double* magnitudes = nullptr;  // Σ |weight * element|
};

// REQUIRES: planes[origin + offsets[t] + i] is readable for every tap t and i < blocks * dot_lanes.
void dot_rows(const DotRows& work) noexcept;

}  // namespace kiln::reference
