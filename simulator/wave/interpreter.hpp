// run_wave: the loop that executes one wave's Ops until it ends, waits, has had its share, or faults.
//
// Thread-safety: one thread a wave; any number of waves at once on one Program. Ownership: borrows all.
#pragma once

#include <atomic>
#include <cstdint>

#include "simulator/wave/program.hpp"
#include "simulator/wave/wave.hpp"

namespace kiln::simulator {

// Answers end, barrier, yield (the share is used up, or the wave sleeps, or `stop` was raised) or fault, which stands in
// the wave. `page`: the wave's last code page; null at first. Leaves the thread's floating-point mode as it was.
Next run_wave(Wave& wave, Program& program, CodePage*& page, std::uint64_t share,
              const std::atomic<const char*>& stop);

}  // namespace kiln::simulator
