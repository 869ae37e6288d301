#include "amdgpu_pm4/recipe/recorded_dispatch.hpp"

#include <algorithm>

#include "amdgpu_pm4/packets/encoders.hpp"
#include "amdgpu_pm4/recipe/kernel_check.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

constexpr std::uint32_t low(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
constexpr std::uint32_t high(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); }
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
        data[slot.first] = low(place.scratch_va);
        data[slot.first + 1] = high(place.scratch_va);
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
  const std::array pgm{low(code >> 8), bits_47_to_40(code)};
  const std::uint32_t lds = (kernel.lds_bytes + place.dynamic_lds_bytes + lds_granule - 1) / lds_granule;
  const std::array rsrc{kernel.rsrc1, kernel.rsrc2 | pgm_rsrc2::lds_size.put(lds)};
  return emit_set_sh_reg(out, Register::pgm_lo, pgm) && emit_set_sh_reg(out, Register::pgm_rsrc1, rsrc) &&
         emit_set_sh_reg(out, Register::pgm_rsrc3, kernel.rsrc3);
}

bool emit_scratch(PacketWriter& out, const Capabilities& capabilities, const DispatchPlace& place) {
  if (capabilities.scratch_registers && place.scratch.tmpring_size != 0) {
    const std::array base{low(place.scratch_va >> 8), bits_47_to_40(place.scratch_va)};
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
  if (!fits) return internal_error("kernel " + kernel.name + ": its packets are longer than the room for them");
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
    at[kernarg_at_] = low(arguments.kernarg_va);
    at[kernarg_at_ + 1] = high(arguments.kernarg_va);
  }
  return append_launch(out, arguments);
}

bool RecordedDispatch::append_again(PacketWriter& out, const DispatchArguments& arguments) const noexcept {
  constexpr std::size_t most = 4 + dispatch_direct_dwords;
  if (out.left() < most) return false;
  if (kernarg_sgpr_) {
    const std::array pointer{low(arguments.kernarg_va), high(arguments.kernarg_va)};
    if (!emit_set_sh_reg(out, next_after(Register::user_data_0, *kernarg_sgpr_), pointer)) return false;
  }
  return append_launch(out, arguments);
}

}  // namespace kiln::amdgpu_pm4
