// SimModel: what a simulated device's stages cost, and what shall go wrong when.
//
// Thread-safety: values. All counts of submissions are from 1; 0: never.
#pragma once

#include <cstdint>

namespace kiln::support {

// a + b·bytes + c·FLOP, in nanoseconds.
struct StageCost {
  double fixed_ns = 0;
  double byte_ns = 0;
  double flop_ns = 0;

  double of(double bytes, double flops) const noexcept { return fixed_ns + byte_ns * bytes + flop_ns * flops; }
};

struct SimScript {
  std::uint64_t slow_from = 0;   // the submission from which on the device is slower, by slow_factor…
  std::uint64_t slow_until = 0;  // …and the first that is as before again
  double slow_factor = 3;
  std::uint64_t hang_at = 0;       // it never ends, nor do those behind it
  std::uint64_t lose_at = 0;       // the device is lost when this one runs
  std::uint64_t fail_at = 0;       // it answers internal
  std::uint64_t wrong_at = 0;      // one bit of the last buffer it binds is wrong
  std::uint64_t memory_bytes = 0;  // what buffers may take together; 0: anything
};

struct SimModel {
  StageCost upload, device, readback;
  double build_ns = 0;
  double first_use_ns = 0;  // of a program's first dispatch, beside its own cost
  double noise = 0;         // standard deviation of the logarithm of each cost
  std::uint64_t seed = 1;
  SimScript script;
};

// The factor of the numbered draw: exp(noise · a standard normal), the same for the same numbers.
double noise_factor(double noise, std::uint64_t seed, std::uint64_t draw) noexcept;

}  // namespace kiln::support
