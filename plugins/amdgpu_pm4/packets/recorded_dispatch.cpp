#include "amdgpu_pm4/packets/recorded_dispatch.hpp"

#include <algorithm>

#include "amdgpu_pm4/packets/encoders.hpp"
#include "amdgpu_pm4/packets/registers.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

constexpr std::uint32_t waves_per_compute_unit = 32;

constexpr Field wavesize_of(Generation generation) {
  return generation == Generation::gfx10_3 ? tmpring_size::wavesize_gfx10_3 : tmpring_size::wavesize_gfx11;
}

// Word 3 of a buffer resource of gfx10.
namespace resource {
constexpr Field format{"FORMAT", 12, 7};
constexpr Field index_stride{"INDEX_STRIDE", 21, 2};
constexpr Field add_tid_enable{"ADD_TID_ENABLE", 23, 1};
constexpr Field resource_level{"RESOURCE_LEVEL", 24, 1};
constexpr Field oob_select{"OOB_SELECT", 28, 2};
constexpr std::uint32_t format_32_float = 22, out_of_bounds_raw = 3;
constexpr std::uint32_t stride_of_32 = 2, stride_of_64 = 3;
constexpr std::uint32_t swizzle_enable = 1U << 31;  // in word 1
}  // namespace resource

}  // namespace

Result<ScratchRing> scratch_ring(const DeviceShape& shape, std::uint32_t bytes_per_lane, std::uint32_t wave_lanes) {
  const Capabilities& capabilities = capabilities_of(shape.generation);
  const std::uint64_t wave_bytes = std::uint64_t{bytes_per_lane} * wave_lanes;
  // An odd number of granules spreads the slots over the memory channels.
  const std::uint64_t granules = (wave_bytes + capabilities.scratch_granule - 1) / capabilities.scratch_granule | 1;
  const Field wavesize = wavesize_of(shape.generation);
  if (!wavesize.holds(granules)) {
    return unsupported("scratch of " + std::to_string(bytes_per_lane) + " bytes per lane: a wave of " +
                       std::to_string(wave_lanes) + " lanes needs " + std::to_string(wave_bytes) +
                       " bytes, expected at most " +
                       std::to_string(std::uint64_t{wavesize.largest()} * capabilities.scratch_granule));
  }
  const std::uint32_t engines = capabilities.scratch_waves_per_engine ? std::max(shape.shader_engines, 1U) : 1;
  const std::uint32_t waves =
      std::clamp(shape.compute_units * waves_per_compute_unit / engines, 1U, tmpring_size::waves.largest());
  ScratchRing ring;
  ring.tmpring_size = tmpring_size::waves.put(waves) | wavesize.put(static_cast<std::uint32_t>(granules));
  ring.bytes = scratch_ring_bytes(capabilities, ring.tmpring_size, shape.shader_engines);
  return ring;
}

std::uint64_t scratch_slot_bytes(const Capabilities& capabilities, std::uint32_t value) noexcept {
  return std::uint64_t{wavesize_of(capabilities.generation).of(value)} * capabilities.scratch_granule;
}

std::uint64_t scratch_ring_bytes(const Capabilities& capabilities, std::uint32_t value,
                                 std::uint32_t shader_engines) noexcept {
  const std::uint64_t engines = capabilities.scratch_waves_per_engine ? std::max(shader_engines, 1U) : 1;
  return scratch_slot_bytes(capabilities, value) * tmpring_size::waves.of(value) * engines;
}

std::array<std::uint32_t, 4> scratch_resource(std::uint64_t va, std::uint32_t wave_lanes) noexcept {
  using namespace resource;
  return {static_cast<std::uint32_t>(va), (static_cast<std::uint32_t>(va >> 32) & 0xFFFF) | swizzle_enable, ~0U,
          format.put(format_32_float) | index_stride.put(wave_lanes == 64 ? stride_of_64 : stride_of_32) |
              add_tid_enable.put(1) | resource_level.put(1) | oob_select.put(out_of_bounds_raw)};
}

namespace {

constexpr std::uint32_t bits_47_to_40(std::uint64_t address) {
  return address_high::data.put(static_cast<std::uint32_t>(address >> 40) & address_high::data.largest());
}

std::uint32_t resource_limits_of(const DeviceShape& shape, std::uint32_t waves) {
  const bool odd_engines =
      shape.shader_engines != 0 && shape.compute_units / shape.shader_engines % 4 != 0;  // engines of such a size
  return resource_limits::simd_dest_cntl.put(waves % 4 == 0 ? 1 : 0) |
         resource_limits::force_simd_dist.put(waves == 1 && odd_engines ? 1 : 0) |
         resource_limits::cu_group_count.put(waves == 1 ? 1 : 0);
}

using UserData = std::array<std::uint32_t, user_data_registers>;

UserData user_data_of(const KernelCode& kernel, const DispatchPlace& place) {
  UserData data{};
  for (const UserSgprSlot& slot : kernel.user_sgpr_slots) {
    switch (slot.value) {
      case UserSgpr::private_segment_buffer:
        if (kernel.scratch_bytes != 0) {
          const auto resource = scratch_resource(place.scratch_va, kernel.wave_lanes);
          std::copy(resource.begin(), resource.end(), data.begin() + slot.first);
        }
        break;
      case UserSgpr::flat_scratch_init:
        data[slot.first] = low_dword(place.scratch_va);
        data[slot.first + 1] = high_dword(place.scratch_va);
        break;
      case UserSgpr::private_segment_size:
        data[slot.first] = kernel.scratch_bytes;
        break;
      default:  // the kernarg pointer is patched; check_kernel refuses the rest
        break;
    }
  }
  return data;
}

bool emit_program(PacketWriter& out, const KernelCode& kernel, const DispatchPlace& place) {
  const std::uint64_t code = place.image_va + kernel.entry;
  const std::array pgm{low_dword(code >> 8), bits_47_to_40(code)};
  const std::uint32_t lds = (kernel.lds_bytes + place.dynamic_lds_bytes + lds_granule - 1) / lds_granule;
  const std::array rsrc{kernel.rsrc1, kernel.rsrc2 | pgm_rsrc2::lds_size.put(lds)};
  return emit_set_sh_reg(out, Register::pgm_lo, pgm) && emit_set_sh_reg(out, Register::pgm_rsrc1, rsrc) &&
         emit_set_sh_reg(out, Register::pgm_rsrc3, kernel.rsrc3);
}

bool emit_scratch(PacketWriter& out, const Capabilities& capabilities, const DispatchPlace& place) {
  if (capabilities.scratch_registers && place.scratch.tmpring_size != 0) {
    const std::array base{low_dword(place.scratch_va >> 8), bits_47_to_40(place.scratch_va)};
    if (!emit_set_sh_reg(out, Register::scratch_base_lo, base)) return false;
  }
  return emit_set_sh_reg(out, Register::tmpring_size, place.scratch.tmpring_size);
}

}  // namespace

Result<RecordedDispatch> RecordedDispatch::record(const KernelCode& kernel, const DeviceShape& shape,
                                                  const DispatchPlace& place) {
  if (Status status = check_kernel(kernel, shape, place); !status.ok()) return status;
  const std::uint32_t lanes = place.workgroup[0] * place.workgroup[1] * place.workgroup[2];
  const std::uint32_t waves = (lanes + kernel.wave_lanes - 1) / kernel.wave_lanes;
  RecordedDispatch recorded;
  PacketWriter out(recorded.dwords_);
  const bool fits = emit_program(out, kernel, place) && emit_scratch(out, capabilities_of(shape.generation), place) &&
                    emit_set_sh_reg(out, Register::resource_limits, resource_limits_of(shape, waves)) &&
                    emit_set_sh_reg(out, Register::num_thread_x, place.workgroup) &&
                    emit_set_sh_reg(out, Register::user_data_0, user_data_of(kernel, place));
  if (!fits) return internal_error("kernel " + kernel.name + ": packets are longer than the reserved space");
  recorded.size_ = static_cast<std::uint32_t>(out.size());
  for (const UserSgprSlot& slot : kernel.user_sgpr_slots) {
    if (slot.value == UserSgpr::kernarg_pointer) recorded.kernarg_sgpr_ = slot.first;
  }
  recorded.kernarg_at_ = recorded.size_ - user_data_registers + recorded.kernarg_sgpr_.value_or(0);
  recorded.initiator_ = dispatch_initiator::compute_shader_en.put(1) | dispatch_initiator::force_start_at_000.put(1) |
                        dispatch_initiator::order_mode.put(1) |
                        dispatch_initiator::cs_w32_en.put(kernel.wave_lanes == 32 ? 1 : 0);
  return recorded;
}

bool RecordedDispatch::append_launch(PacketWriter& out, const DispatchArguments& arguments) const noexcept {
  return arguments.groups_at ? emit_dispatch_indirect(out, *arguments.groups_at, initiator_)
                             : emit_dispatch_direct(out, arguments.groups, initiator_);
}

bool RecordedDispatch::append(PacketWriter& out, const DispatchArguments& arguments) const noexcept {
  if (out.left() < size_ + dispatch_direct_dwords) return false;
  std::uint32_t* at = out.take(size_);
  std::copy_n(dwords_.data(), size_, at);
  if (kernarg_sgpr_) {
    at[kernarg_at_] = low_dword(arguments.kernarg_va);
    at[kernarg_at_ + 1] = high_dword(arguments.kernarg_va);
  }
  return append_launch(out, arguments);
}

bool RecordedDispatch::append_again(PacketWriter& out, const DispatchArguments& arguments) const noexcept {
  constexpr std::size_t most = 4 + dispatch_direct_dwords;
  if (out.left() < most) return false;
  if (kernarg_sgpr_) {
    const std::array pointer{low_dword(arguments.kernarg_va), high_dword(arguments.kernarg_va)};
    if (!emit_set_sh_reg(out, next_after(Register::user_data_0, *kernarg_sgpr_), pointer)) return false;
  }
  return append_launch(out, arguments);
}

namespace {

std::string text_of(const std::array<std::uint32_t, 3>& sizes) {
  return std::to_string(sizes[0]) + "x" + std::to_string(sizes[1]) + "x" + std::to_string(sizes[2]);
}

std::string text_of(std::uint64_t number) { return std::to_string(number); }

Status check_registers(const KernelCode& kernel) {
  if (kernel.wave_lanes != 32 && kernel.wave_lanes != 64) {
    return corrupt("waves of " + text_of(kernel.wave_lanes) + " lanes, expected 32 or 64");
  }
  if (pgm_rsrc1::priv.of(kernel.rsrc1) != 0) return unsupported("PGM_RSRC1.PRIV is 1, expected 0");
  if (pgm_rsrc2::trap_present.of(kernel.rsrc2) != 0) return unsupported("PGM_RSRC2.TRAP_PRESENT is 1, expected 0");
  if (const std::uint32_t lds = pgm_rsrc2::lds_size.of(kernel.rsrc2); lds != 0) {
    return corrupt("PGM_RSRC2.LDS_SIZE is " + text_of(lds) + ", expected 0: the submitter sets this field");
  }
  const std::uint32_t most_vgprs = most_vgpr_granules(kernel.wave_lanes);
  if (pgm_rsrc1::vgprs.of(kernel.rsrc1) > most_vgprs) {
    return corrupt("PGM_RSRC1.VGPRS is " + text_of(pgm_rsrc1::vgprs.of(kernel.rsrc1)) + ", expected at most " +
                   text_of(most_vgprs) + " for waves of " + text_of(kernel.wave_lanes) + " lanes");
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
        return unsupported(std::string(to_string(slot.value)) + " in user SGPRs is not supported");
    }
    if (slot.count > user_data_registers || slot.first > user_data_registers - slot.count) {
      return corrupt(std::string(to_string(slot.value)) + " in s" + text_of(slot.first) + " is beyond the " +
                     text_of(user_data_registers) + " user SGPRs");
    }
  }
  if (kernel.user_sgprs > user_data_registers) {
    return unsupported(text_of(kernel.user_sgprs) + " user SGPRs, expected at most " + text_of(user_data_registers));
  }
  if (kernel.kernarg_bytes != 0 && !has_kernarg) {
    return corrupt(text_of(kernel.kernarg_bytes) + " bytes of arguments, but no user SGPRs for the argument address");
  }
  return {};
}

Status check_workgroup(const KernelCode& kernel, const DeviceShape& shape, const DispatchPlace& place) {
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
                            " lanes, expected at most " + text_of(most));
  }
  const bool any = kernel.required_workgroup == std::array<std::uint32_t, 3>{};
  if (!any && kernel.required_workgroup != place.workgroup) {
    return invalid_argument("workgroup " + text_of(place.workgroup) + ", expected " +
                            text_of(kernel.required_workgroup));
  }
  const std::uint64_t lds = std::uint64_t{kernel.lds_bytes} + place.dynamic_lds_bytes;
  if (lds > most_lds_bytes) {
    return invalid_argument(text_of(lds) + " bytes of LDS, expected at most " + text_of(most_lds_bytes));
  }
  const Capabilities& capabilities = capabilities_of(shape.generation);
  const VectorRegisters registers = vector_registers_of(shape);
  const GroupLoad load =
      group_load(kernel.rsrc1, kernel.rsrc3, static_cast<std::uint32_t>(lanes), kernel.wave_lanes, registers);
  if (!fits(load, capabilities, registers)) {
    return invalid_argument("workgroup " + text_of(place.workgroup) + ": " + text_of(load.waves) + " waves and " +
                            text_of(load.vgprs) + " vector registers on one SIMD, expected at most " +
                            text_of(capabilities.waves_per_simd) + " and " + text_of(registers.count));
  }
  return {};
}

Status check_scratch(const KernelCode& kernel, const Capabilities& capabilities, const DispatchPlace& place) {
  if (kernel.dynamic_stack) return unsupported("a stack of unknown depth is not supported");
  const bool enabled = pgm_rsrc2::scratch_en.of(kernel.rsrc2) != 0;
  if (enabled != (kernel.scratch_bytes != 0)) {
    return corrupt("PGM_RSRC2.SCRATCH_EN is " + text_of(enabled ? 1 : 0) + ", but the kernel has " +
                   text_of(kernel.scratch_bytes) + " scratch bytes per lane");
  }
  if (!enabled) {
    return place.scratch.tmpring_size == 0 ? ok_status()
                                           : invalid_argument("a scratch ring is set, but the kernel has no scratch");
  }
  const std::uint64_t slot = scratch_slot_bytes(capabilities, place.scratch.tmpring_size);
  const std::uint64_t wanted = std::uint64_t{kernel.scratch_bytes} * kernel.wave_lanes;
  if (slot < wanted) {
    return invalid_argument("a slot of the scratch ring has " + text_of(slot) + " bytes, expected at least " +
                            text_of(wanted) + " for a wave");
  }
  if (place.scratch_va == 0 || place.scratch_va % scratch_alignment != 0) {
    return invalid_argument("scratch address is " + text_of(place.scratch_va) + ", expected a multiple of " +
                            text_of(scratch_alignment));
  }
  return {};
}

}  // namespace

Status check_kernel(const KernelCode& kernel, const DeviceShape& shape, const DispatchPlace& place) {
  const std::string context = "kernel " + kernel.name;
  if (shape.generation == Generation::invalid) return unsupported(context + ": unknown device generation");
  const Capabilities& capabilities = capabilities_of(shape.generation);
  const std::uint64_t code = place.image_va + kernel.entry;
  if (code == 0 || code % code_alignment != 0) {
    return invalid_argument(context + ": code address is " + text_of(code) + ", expected a multiple of " +
                            text_of(code_alignment));
  }
  if (Status status = check_registers(kernel); !status.ok()) return status.within(context);
  if (Status status = check_user_sgprs(kernel); !status.ok()) return status.within(context);
  if (Status status = check_workgroup(kernel, shape, place); !status.ok()) return status.within(context);
  return check_scratch(kernel, capabilities, place).within(context);
}

}  // namespace kiln::amdgpu_pm4
