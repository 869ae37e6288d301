// Which passes of a submission may overlap: the passes are cut into groups in their order, and those of one group
// neither read nor write what another of the group writes.
//
// Thread-safety: a pure function. Ownership: values.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "amdgpu_pm4/device/quarantine.hpp"
#include "amdgpu_pm4/device/submission/bound_pass.hpp"

namespace kiln::amdgpu_pm4 {

// For each group the index past its last pass. A program under suspicion has a group of its own, so that it is known
// which one hung. No passes: no groups.
std::vector<std::size_t> groups_of(std::span<const BoundPass> passes, const Quarantine& quarantine);

}  // namespace kiln::amdgpu_pm4
