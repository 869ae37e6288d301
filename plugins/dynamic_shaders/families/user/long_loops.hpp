// Which loops of a user's GLSL kernel could go round more often than llvmpipe lets the loops of a lane.
//
// Thread-safety: a pure function. Ownership: values.
// It errs to the side of telling: an early break is not seen, both branches of an if count (lanes that run in step take
// both), and so does a loop that the driver unrolls, which nobody knows beforehand.
#pragma once

#include <kiln/kernel.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace kiln::dynamic_shaders {

// Rounds of all loops of a lane together, after which llvmpipe leaves every loop for good. It counts what ends a loop,
// the last look at its condition, as a round.
inline constexpr std::int64_t most_rounds = 65535;

// One sentence for each nest of loops that could pass most_rounds by itself, else one for all of them together if those
// could; and one for each nest with a loop whose rounds are not known before it runs. Known are constants, the grid,
// the workgroup and, of a buffer that ends in an array, how long that can be.
// REQUIRES: its dialect is glsl; it has no open parameters (settled(), kiln/kernel_parameters.hpp).
std::vector<std::string> long_loops(const UserKernelSpec& kernel);

}  // namespace kiln::dynamic_shaders
