#include "amdgpu_pm4/recipe/kernel_check.hpp"

#include "amdgpu_pm4/packets/registers.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

std::string text_of(const std::array<std::uint32_t, 3>& sizes) {
  return std::to_string(sizes[0]) + "x" + std::to_string(sizes[1]) + "x" + std::to_string(sizes[2]);
}

std::string text_of(std::uint64_t number) { return std::to_string(number); }

Status check_registers(const KernelCode& kernel) {
  if (kernel.wave_lanes != 32 && kernel.wave_lanes != 64) {
    return corrupt("waves of " + text_of(kernel.wave_lanes) + " lanes, expected 32 or 64");
  }
  if (pgm_rsrc1::priv.of(kernel.rsrc1) != 0) return unsupported("PGM_RSRC1.PRIV is 1: privileged code");
  if (pgm_rsrc2::trap_present.of(kernel.rsrc2) != 0) return unsupported("PGM_RSRC2.TRAP_PRESENT is 1: a trap handler");
  if (const std::uint32_t lds = pgm_rsrc2::lds_size.of(kernel.rsrc2); lds != 0) {
    return corrupt("PGM_RSRC2.LDS_SIZE is " + text_of(lds) + ", expected 0: the submitter sets it");
  }
  const std::uint32_t most_vgprs = most_vgpr_granules(kernel.wave_lanes);
  if (pgm_rsrc1::vgprs.of(kernel.rsrc1) > most_vgprs) {
    return corrupt("PGM_RSRC1.VGPRS is " + text_of(pgm_rsrc1::vgprs.of(kernel.rsrc1)) + ", the most for waves of " +
                   text_of(kernel.wave_lanes) + " is " + text_of(most_vgprs));
  }
  return {};
}

Status check_user_sgprs(const KernelCode& kernel) {
  bool has_kernarg = false;
  for (const UserSgprSlot& slot : kernel.user_sgpr_slots) {
    switch (slot.value) {
      case UserSgpr::private_segment_buffer:
      case UserSgpr::flat_scratch_init:
      case UserSgpr::private_segment_size:
        break;
      case UserSgpr::kernarg_pointer:
        has_kernarg = true;
        break;
      default:
        return unsupported("wants " + std::string(to_string(slot.value)) + " in user SGPRs, which is not offered");
    }
    if (slot.count > user_data_registers || slot.first > user_data_registers - slot.count) {
      return corrupt(std::string(to_string(slot.value)) + " in s" + text_of(slot.first) + ", past the " +
                     text_of(user_data_registers) + " user SGPRs that there are");
    }
  }
  if (kernel.user_sgprs > user_data_registers) {
    return unsupported(text_of(kernel.user_sgprs) + " user SGPRs, there are " + text_of(user_data_registers));
  }
  if (kernel.kernarg_bytes != 0 && !has_kernarg) {
    return corrupt(text_of(kernel.kernarg_bytes) + " bytes of arguments, and no user SGPRs for their address");
  }
  return {};
}

Status check_workgroup(const KernelCode& kernel, const Capabilities& capabilities, const DispatchPlace& place) {
  std::uint64_t lanes = 1;
  for (const std::uint32_t size : place.workgroup) {
    if (size == 0 || size > most_workgroup_lanes) {
      return invalid_argument("workgroup " + text_of(place.workgroup) + ": each size must be 1 to " +
                              text_of(most_workgroup_lanes));
    }
    lanes *= size;
  }
  const std::uint32_t most = kernel.max_workgroup_lanes != 0 && kernel.max_workgroup_lanes < most_workgroup_lanes
                                 ? kernel.max_workgroup_lanes
                                 : most_workgroup_lanes;
  if (lanes > most) {
    return invalid_argument("workgroup " + text_of(place.workgroup) + " has " + text_of(lanes) +
                            " lanes, the most is " + text_of(most));
  }
  const bool any = kernel.required_workgroup == std::array<std::uint32_t, 3>{};
  if (!any && kernel.required_workgroup != place.workgroup) {
    return invalid_argument("workgroup " + text_of(place.workgroup) + ", it requires " +
                            text_of(kernel.required_workgroup));
  }
  const std::uint64_t lds = std::uint64_t{kernel.lds_bytes} + place.dynamic_lds_bytes;
  if (lds > most_lds_bytes) {
    return invalid_argument(text_of(lds) + " bytes of LDS, the most is " + text_of(most_lds_bytes));
  }
  const GroupLoad load = group_load(kernel.rsrc1, static_cast<std::uint32_t>(lanes), kernel.wave_lanes);
  if (!fits(load, capabilities)) {
    return invalid_argument("workgroup " + text_of(place.workgroup) + ": " + text_of(load.waves) +
                            " waves on one SIMD with " + text_of(load.vgprs) + " vector registers, there are " +
                            text_of(capabilities.waves_per_simd) + " and " + text_of(capabilities.vgprs_per_simd));
  }
  return {};
}

Status check_scratch(const KernelCode& kernel, const Capabilities& capabilities, const DispatchPlace& place) {
  if (kernel.dynamic_stack) return unsupported("a stack of unknown depth");
  const bool enabled = pgm_rsrc2::scratch_en.of(kernel.rsrc2) != 0;
  if (enabled != (kernel.scratch_bytes != 0)) {
    return corrupt("PGM_RSRC2.SCRATCH_EN is " + text_of(enabled ? 1 : 0) + " with " + text_of(kernel.scratch_bytes) +
                   " scratch bytes a lane");
  }
  if (!enabled) {
    return place.scratch.tmpring_size == 0 ? ok_status() : invalid_argument("a scratch ring, and no scratch to use it");
  }
  const std::uint64_t slot = scratch_slot_bytes(capabilities, place.scratch.tmpring_size);
  const std::uint64_t wanted = std::uint64_t{kernel.scratch_bytes} * kernel.wave_lanes;
  if (slot < wanted) {
    return invalid_argument("a wave needs " + text_of(wanted) + " bytes of scratch, a slot of its ring has " +
                            text_of(slot));
  }
  if (place.scratch_va == 0 || place.scratch_va % scratch_alignment != 0) {
    return invalid_argument("scratch at address " + text_of(place.scratch_va) + ", expected a multiple of " +
                            text_of(scratch_alignment));
  }
  return {};
}

}  // namespace

Status check_kernel(const KernelCode& kernel, const DeviceShape& shape, const DispatchPlace& place) {
  const std::string context = "kernel " + kernel.name;
  if (shape.generation == Generation::invalid) return unsupported(context + ": a device of no generation known here");
  const Capabilities& capabilities = capabilities_of(shape.generation);
  const std::uint64_t code = place.image_va + kernel.entry;
  if (code == 0 || code % code_alignment != 0) {
    return invalid_argument(context + ": code at address " + text_of(code) + ", expected a multiple of " +
                            text_of(code_alignment));
  }
  if (Status status = check_registers(kernel); !status.ok()) return status.within(context);
  if (Status status = check_user_sgprs(kernel); !status.ok()) return status.within(context);
  if (Status status = check_workgroup(kernel, capabilities, place); !status.ok()) return status.within(context);
  return check_scratch(kernel, capabilities, place).within(context);
}

}  // namespace kiln::amdgpu_pm4
