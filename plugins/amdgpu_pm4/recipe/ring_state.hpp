// What every submission starts with: registers keep what other contexts left in them, so all that no dispatch sets is
// set here.
//
// Thread-safety and ownership: a function without state.
#pragma once

#include <cstddef>

#include "amdgpu_pm4/packets/capabilities.hpp"
#include "amdgpu_pm4/packets/packet_writer.hpp"

namespace kiln::amdgpu_pm4 {

inline constexpr std::size_t most_ring_state_dwords = 40;

// false: no room; what was written then is not whole.
[[nodiscard]] bool emit_ring_state(PacketWriter& out, const Capabilities& capabilities) noexcept;

}  // namespace kiln::amdgpu_pm4
