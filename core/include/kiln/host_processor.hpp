// The host's own processors, as a device that computes on them finds them.
//
// Thread-safety: pure but for the affinity of the calling thread. Ownership: none, values only.
#pragma once

namespace kiln {

// Cores that the calling thread may use; at least 1.
int host_cores() noexcept;

// GFLOP/s in f32 that no code on those cores can pass: vector lanes × two fused multiply-adds a cycle × a clock that no
// processor reaches. 0: nothing is known of the vector unit.
double host_roof_gflops() noexcept;

}  // namespace kiln
