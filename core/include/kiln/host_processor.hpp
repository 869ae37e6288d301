// Host processor: the cores, the instruction sets and the peak rate of the host.
//
// Thread-safety: functions from any thread; the result depends on the affinity of the calling thread.
//
//   const double per_core = kiln::host_roof_gflops() / kiln::host_cores();
#pragma once

#include <string>

namespace [[gnu::visibility("default")]] kiln {

// Returns the number of cores that the calling thread may use, at least 1.
unsigned host_cores() noexcept;

// Returns the number of processors of the host, also of those that this process may not use or that are off: what
// sysconf(_SC_NPROCESSORS_CONF) says, at least 1.
unsigned host_processors() noexcept;

// Returns the instruction sets of the processor, in words that are equal for equal sets: for the identity of code that a
// driver compiled for the host.
std::string host_instructions();

// Returns an upper limit of the f32 rate on these cores in GFLOP/s: vector lanes x two fused multiply-adds per cycle x a
// clock rate above the rate of any processor. 0: unknown vector unit.
double host_roof_gflops() noexcept;

}  // namespace kiln
