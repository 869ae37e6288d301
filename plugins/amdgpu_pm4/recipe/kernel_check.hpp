// Checks of a kernel against a device, and what one workgroup asks of a SIMD.
#pragma once

#include <cstdint>

#include "amdgpu_pm4/packets/capabilities.hpp"
#include "amdgpu_pm4/packets/registers.hpp"
#include "amdgpu_pm4/recipe/recorded_dispatch.hpp"

namespace kiln::amdgpu_pm4 {

// Whether a kernel can be dispatched as it is asked for. The hardware checks none of this: it would hang, or compute
// nonsense.
//
// Thread-safety and ownership: a function without state.

// invalid_argument: the place does not fit the kernel. unsupported: the kernel wants what is not offered. corrupt: the
// kernel's own numbers contradict each other. The message names the kernel and both sides.
Status check_kernel(const KernelCode& kernel, const DeviceShape& shape, const DispatchPlace& place);

// GroupLoad: what a workgroup asks of one SIMD. Its waves run on one compute unit (2 SIMDs), or on a pair of them (4),
// and all must be there at once, or none ever starts.
//
// Thread-safety and ownership: values.
struct GroupLoad {
  std::uint32_t waves = 0;  // on the fullest SIMD
  std::uint32_t vgprs = 0;  // of 32 lanes, of those waves
};

// The largest PGM_RSRC1.VGPRS: 256 registers, counted in granules less one.
constexpr std::uint32_t most_vgpr_granules(std::uint32_t wave_lanes) noexcept { return wave_lanes == 32 ? 31 : 63; }

// REQUIRES: lanes at most 1024; wave_lanes 32 or 64. A granule is 8 registers of 32 lanes or 4 of 64.
constexpr GroupLoad group_load(std::uint32_t rsrc1, std::uint32_t lanes, std::uint32_t wave_lanes) noexcept {
  const std::uint32_t simds = pgm_rsrc1::wgp_mode.of(rsrc1) != 0 ? 4 : 2;
  const std::uint32_t waves = (lanes + wave_lanes - 1) / wave_lanes;
  const std::uint32_t on_one = (waves + simds - 1) / simds;
  return {on_one, on_one * 8 * (pgm_rsrc1::vgprs.of(rsrc1) + 1)};
}

constexpr bool fits(const GroupLoad& load, const Capabilities& capabilities) noexcept {
  return load.waves <= capabilities.waves_per_simd && load.vgprs <= capabilities.vgprs_per_simd;
}

}  // namespace kiln::amdgpu_pm4
