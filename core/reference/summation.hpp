// How the references sum: tasks on a few threads, and the inner loop.
//
// parallel_for: independent tasks on a few threads that live for the call.
//
// Thread-safety: any thread may call. Ownership: `task` is borrowed for the call and must bear concurrent calls.
// Which thread runs a task is left open, so a task's result must depend on its index alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace kiln::reference {

// Multiply-adds: below, starting a thread costs more than it saves.
inline constexpr double worth_a_thread = 1e6;

// Runs task(0) … task(count - 1) and returns when all are done. threads 0: as many as the machine has cores; where the
// system refuses a thread, the others do its work. The first exception of a task is thrown again here, once no task
// runs.
void parallel_for(std::int64_t count, unsigned threads, const std::function<void(std::int64_t)>& task);

// dot_rows: the inner loop of every reference: four weighted sums of shifted rows at once, in double precision.
//
// Thread-safety: a pure function over its arguments. Ownership: everything is borrowed for the call.
// Products of two fp32 values are exact in double, so the sums depend on the order of the taps and on nothing else: not
// on the vector width that the machine offers, not on fused multiply-add, not on how work is spread over threads.

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
