#include "simulator/compute/launch.hpp"

#include <algorithm>
#include <string>

#include "simulator/wave/wave.hpp"

namespace kiln::simulator {
namespace {

// DISPATCH_INITIATOR
constexpr std::uint32_t compute_shader_enable = 1U << 0, partial_groups = 1U << 1, start_at_zero = 1U << 2,
                        thread_dimensions = 1U << 5, wave32_enable = 1U << 15;
// PGM_RSRC1
constexpr std::uint32_t privileged = 1U << 20;
// PGM_RSRC2
constexpr std::uint32_t scratch_enable = 1U << 0, trap_present = 1U << 6;

constexpr std::uint32_t most_threads = 1024, most_lds_bytes = 64 * 1024, lds_granule = 512, most_user_sgprs = 16,
                        most_vgprs = 256, sgprs = 106;

std::uint32_t bits(std::uint32_t word, unsigned low, unsigned count) { return word >> low & ((1U << count) - 1U); }

Fault bad_state(const DispatchState& state, std::string reason) {
  return {FaultKind::bad_state, state.program, {}, std::move(reason)};
}
Fault overrun(const DispatchState& state, std::string reason) {
  return {FaultKind::overrun, state.program, {}, std::move(reason)};
}

std::optional<Fault> plan_grid(const DispatchState& state, Launch& out) {
  std::uint64_t total = 1;
  constexpr const char* names[] = {"X", "Y", "Z"};
  for (unsigned d = 0; d < 3; ++d) {
    const std::uint32_t full = bits(state.num_thread[d], 0, 16), partial = bits(state.num_thread[d], 16, 16);
    if (full == 0) return bad_state(state, std::string("NUM_THREAD_") + names[d] + " is 0");
    total *= full;
    const std::uint32_t start = (state.initiator & start_at_zero) != 0 ? 0 : state.start[d];
    std::uint32_t end = state.groups[d], last = full;
    if ((state.initiator & thread_dimensions) != 0) {
      const std::uint32_t rest = end % full;
      end = end / full + (rest != 0 ? 1 : 0);
      if (rest != 0) last = rest;
    } else if ((state.initiator & partial_groups) != 0 && partial != 0) {
      if (partial > full) {
        return bad_state(state, std::string("NUM_THREAD_") + names[d] + ": partial group of " +
                                    std::to_string(partial) + " threads, whole one of " + std::to_string(full));
      }
      last = partial;
    }
    out.threads[d] = full;
    out.last_threads[d] = last;
    out.start[d] = start;
    out.count[d] = end > start ? end - start : 0;
  }
  if (total > most_threads) {
    return bad_state(state,
                     "workgroup of " + std::to_string(total) + " threads, the most is " + std::to_string(most_threads));
  }
  return std::nullopt;
}

std::optional<Fault> plan_scratch(const DispatchState& state, Launch& out) {
  out.scratch = (state.rsrc2 & scratch_enable) != 0;
  if (!out.scratch) return std::nullopt;
  const bool gfx11 = state.generation == Generation::gfx11;
  out.scratch_slots = bits(state.tmpring_size, 0, 12);
  out.scratch_wave_bytes = gfx11 ? bits(state.tmpring_size, 12, 15) * 256 : bits(state.tmpring_size, 12, 13) * 1024;
  out.scratch_base = state.scratch_base;
  if (out.scratch_slots == 0 || out.scratch_wave_bytes == 0) {
    return bad_state(state, "SCRATCH_EN with TMPRING_SIZE of " + std::to_string(out.scratch_slots) + " waves of " +
                                std::to_string(out.scratch_wave_bytes) + " bytes");
  }
  if (gfx11 && out.scratch_base == 0) return bad_state(state, "SCRATCH_EN with DISPATCH_SCRATCH_BASE 0");
  if (out.waves_per_group() > out.scratch_slots) {
    return bad_state(state, "workgroup of " + std::to_string(out.waves_per_group()) + " waves, scratch for " +
                                std::to_string(out.scratch_slots));
  }
  return std::nullopt;
}

}  // namespace

std::uint64_t resident_groups(const Launch& launch, unsigned compute_units) noexcept {
  // Of a compute unit: two vector units, each with a register file and slots for waves.
  constexpr std::uint64_t vector_units = 2, slots = 16, most_groups = 16;
  const std::uint64_t registers =
      (launch.generation == Generation::gfx11 ? 1536 : 1024) * std::uint64_t{32} / launch.lanes();
  const std::uint64_t of_wave = std::max<std::uint64_t>(1, launch.vgprs + launch.shared_vgprs);
  const std::uint64_t waves = vector_units * std::clamp<std::uint64_t>(registers / of_wave, 1, slots);
  std::uint64_t groups = std::min(most_groups, waves / launch.waves_per_group());
  if (launch.lds_bytes != 0) groups = std::min<std::uint64_t>(groups, most_lds_bytes / launch.lds_bytes);
  groups = std::max<std::uint64_t>(1, groups) * compute_units;
  if (launch.scratch) groups = std::min<std::uint64_t>(groups, launch.scratch_slots / launch.waves_per_group());
  return std::max<std::uint64_t>(1, groups);
}

std::optional<Fault> plan_launch(const DispatchState& state, Launch& out) {
  if (state.generation == Generation::invalid) return bad_state(state, "dispatch without a generation");
  if ((state.initiator & compute_shader_enable) == 0) return bad_state(state, "COMPUTE_SHADER_EN is 0");
  if ((state.rsrc1 & privileged) != 0) return bad_state(state, "PGM_RSRC1.PRIV is set");
  if ((state.rsrc2 & trap_present) != 0)
    return bad_state(state, "PGM_RSRC2.TRAP_PRESENT is set, and there is no trap handler");
  const std::size_t engines = state.generation == Generation::gfx11 ? state.cu_mask.size() : state.cu_mask.size() / 2;
  if (std::all_of(state.cu_mask.begin(), state.cu_mask.begin() + static_cast<std::ptrdiff_t>(engines),
                  [](std::uint32_t mask) { return mask == 0; })) {
    return bad_state(state, "all STATIC_THREAD_MGMT masks are 0: no compute unit may run it");
  }

  out.generation = state.generation;
  out.border_colors = state.border_colors;
  out.wave = (state.initiator & wave32_enable) != 0 ? WaveSize::wave32 : WaveSize::wave64;
  out.program = state.program;
  if (std::optional<Fault> fault = plan_grid(state, out)) return fault;

  out.vgprs = (bits(state.rsrc1, 0, 6) + 1) * (out.wave == WaveSize::wave32 ? 8 : 4);
  out.vgprs = std::min(out.vgprs, most_vgprs);
  out.shared_vgprs = bits(state.rsrc3, 0, 4) * 8;
  if (out.shared_vgprs != 0 && out.wave == WaveSize::wave32) {
    return bad_state(state,
                     "PGM_RSRC3.SHARED_VGPR_CNT " + std::to_string(out.shared_vgprs / 8) + " with waves of 32 lanes");
  }
  if (out.vgprs + out.shared_vgprs > most_vgprs) {
    return overrun(state, std::to_string(out.vgprs) + " VGPRs and " + std::to_string(out.shared_vgprs) +
                              " shared ones of " + std::to_string(most_vgprs));
  }
  out.mode = bits(state.rsrc1, 12, 8) | bits(state.rsrc1, 21, 1) << mode_bit::dx10_clamp |
             bits(state.rsrc1, 23, 1) << mode_bit::ieee | bits(state.rsrc1, 26, 1) << mode_bit::fp16_ovfl;
  out.user_data = state.user_data;
  out.user_sgprs = bits(state.rsrc2, 1, 5);
  for (unsigned d = 0; d < 3; ++d) out.group_id[d] = bits(state.rsrc2, 7 + d, 1) != 0;
  out.group_info = bits(state.rsrc2, 10, 1) != 0;
  out.thread_ids = std::min(bits(state.rsrc2, 11, 2), 2U) + 1;
  if (out.user_sgprs > most_user_sgprs) {
    return overrun(state, "USER_SGPR " + std::to_string(out.user_sgprs) + " of " + std::to_string(most_user_sgprs));
  }
  static_assert(most_user_sgprs + 5 <= sgprs);
  out.lds_allocation = bits(state.rsrc2, 15, 9);
  out.lds_bytes = out.lds_allocation * lds_granule;
  if (out.lds_bytes > most_lds_bytes) {
    return overrun(state, "LDS_SIZE " + std::to_string(out.lds_bytes) + " bytes of " + std::to_string(most_lds_bytes));
  }
  const std::uint32_t id_vgprs = state.generation == Generation::gfx11 ? 1 : out.thread_ids;
  if (id_vgprs > out.vgprs) {
    return overrun(state,
                   "thread ids take " + std::to_string(id_vgprs) + " of " + std::to_string(out.vgprs) + " VGPRs");
  }
  return plan_scratch(state, out);
}

}  // namespace kiln::simulator
