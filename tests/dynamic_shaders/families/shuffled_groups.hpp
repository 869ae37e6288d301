// shuffled: a plan whose workgroups do each other's work: group i of a launch computes what another would have, by a
// seeded permutation of all of them.
//
// A driver that takes groups in the order of their numbers hides a kernel in which a group leans on what one before it
// has written. Thread-safety: pure functions. Ownership: values.
#pragma once

#include <kiln/kernel.hpp>

#include <cstdint>

namespace kiln::dynamic_shaders {

// i ↦ (factor · i + shift) mod groups; factor and groups have no common divisor, and no product exceeds 32 bits.
struct GroupOrder {
  std::uint32_t groups = 1, factor = 1, shift = 0;
  std::uint32_t at(std::uint32_t group) const noexcept { return (factor * group + shift) % groups; }
};
// Where there are at least two groups none of the first two stays where it is. REQUIRES: groups is 1 to 2^24.
GroupOrder group_order(std::uint32_t groups, std::uint64_t seed) noexcept;
// From the last to the first.
GroupOrder reversed_order(std::uint32_t groups) noexcept;

// REQUIRES: every pass is GLSL that asks for its group by gl_WorkGroupID or gl_GlobalInvocationID.
KernelPlan shuffled(KernelPlan plan, std::uint64_t seed);
Pass reordered(Pass pass, const GroupOrder& order);

}  // namespace kiln::dynamic_shaders
