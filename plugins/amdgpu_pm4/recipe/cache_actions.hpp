// What a compute ring does about caches, and when. Vector (GLV), scalar (GLK) and instruction (GLI) caches and the
// shader arrays' L1 (GL1) are not coherent with each other; L2 (GL2, its metadata GLM) is shared by the whole GPU, and
// the host is behind it.
//
// Thread-safety and ownership: constants.
#pragma once

#include "amdgpu_pm4/packets/packet_fields.hpp"

namespace kiln::amdgpu_pm4 {

// A dispatch reads what an earlier one of the queue wrote: 0x380.
inline constexpr std::uint32_t acquire_after_dispatch = gcr::glk_inv.put(1) | gcr::glv_inv.put(1) | gcr::gl1_inv.put(1);

// The first dispatch of a submission reads what the host wrote, its own code included: 0xC3B1.
inline constexpr std::uint32_t acquire_after_host = acquire_after_dispatch | gcr::gli_inv.put(1) | gcr::glm_wb.put(1) |
                                                    gcr::glm_inv.put(1) | gcr::gl2_inv.put(1) | gcr::gl2_wb.put(1);

// The host reads what dispatches wrote; in RELEASE_MEM's bits: 0x603000.
inline constexpr std::uint32_t release_to_host =
    release_mem::glm_wb.put(1) | release_mem::glm_inv.put(1) | release_mem::gl2_wb.put(1) | release_mem::seq.put(1);

}  // namespace kiln::amdgpu_pm4
