#include "amdgpu_pm4/recipe/ring_state.hpp"

#include <array>

#include "amdgpu_pm4/packets/encoders.hpp"
#include "amdgpu_pm4/recipe/cache_actions.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

constexpr std::uint32_t every_compute_unit = ~0U;
constexpr std::uint32_t start_delay = 0x20;
constexpr std::uint32_t groups_interleaved = 64;

}  // namespace

// The order is RADV's: see docs/amdgpu-dispatch.md.
bool emit_ring_state(PacketWriter& out, const Capabilities& capabilities) noexcept {
  constexpr std::array<std::uint32_t, 3> start{};
  constexpr std::array two_engines{every_compute_unit, every_compute_unit};
  constexpr std::array four_engines{every_compute_unit, every_compute_unit, every_compute_unit, every_compute_unit};
  constexpr std::array<std::uint32_t, 4> accumulators{};
  return emit_acquire_mem(out, acquire_after_host) && emit_set_sh_reg(out, Register::start_x, start) &&
         emit_set_sh_reg(out, Register::static_thread_mgmt_se0, two_engines) &&
         emit_set_sh_reg(out, Register::static_thread_mgmt_se2, two_engines) &&
         (!capabilities.coherence_start_delay ||
          emit_set_uconfig_reg(out, Register::cp_coher_start_delay, start_delay)) &&
         emit_set_sh_reg(out, Register::user_accum_0, accumulators) &&
         (capabilities.shader_engine_registers <= 4 ||
          emit_set_sh_reg(out, Register::static_thread_mgmt_se4, four_engines)) &&
         (!capabilities.dispatch_interleave || emit_set_sh_reg(out, Register::dispatch_interleave, groups_interleaved));
}

}  // namespace kiln::amdgpu_pm4
