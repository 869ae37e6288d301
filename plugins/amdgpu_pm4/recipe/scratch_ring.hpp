// ScratchRing: private memory of lanes. Each wave in flight has a slot of a ring; TMPRING_SIZE says how many slots and
// how large, and the submitter says where the ring lies: by registers on gfx11, by user SGPRs on gfx10.3.
//
// Thread-safety and ownership: values.
#pragma once

#include <kiln/status.hpp>

#include <array>
#include <cstdint>

#include "amdgpu_pm4/packets/capabilities.hpp"

namespace kiln::amdgpu_pm4 {

struct ScratchRing {
  std::uint32_t tmpring_size = 0;  // the register
  std::uint64_t bytes = 0;         // that must lie at its address, which is a multiple of 256
};

inline constexpr std::uint64_t scratch_alignment = 256;

// A ring for every wave that the device can hold, as far as the register can count them. unsupported: one wave's slot
// is larger than the register can tell.
Result<ScratchRing> scratch_ring(const DeviceShape& shape, std::uint32_t bytes_per_lane, std::uint32_t wave_lanes);

// What TMPRING_SIZE makes of memory, read back: bytes of one wave's slot, and of the ring.
std::uint64_t scratch_slot_bytes(const Capabilities& capabilities, std::uint32_t tmpring_size) noexcept;
std::uint64_t scratch_ring_bytes(const Capabilities& capabilities, std::uint32_t tmpring_size,
                                 std::uint32_t shader_engines) noexcept;

// The buffer resource that gfx10.3 code finds in its first user SGPRs: lanes' dwords lie side by side.
std::array<std::uint32_t, 4> scratch_resource(std::uint64_t va, std::uint32_t wave_lanes) noexcept;

}  // namespace kiln::amdgpu_pm4
