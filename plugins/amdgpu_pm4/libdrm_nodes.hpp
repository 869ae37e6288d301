// The nodes of this system, through libdrm and libdrm_amdgpu.
//
// Thread-safety: see NodeSource. Ownership: the answer is a value without state.
#pragma once

#include "amdgpu_pm4/node_source.hpp"

namespace kiln::amdgpu_pm4 {

NodeSource libdrm_nodes();

}  // namespace kiln::amdgpu_pm4
