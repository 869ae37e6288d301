#include "recipe/sample.hpp"

#include <catch2/catch.hpp>

namespace kiln::amdgpu_pm4 {

KernelCode sample_kernel_gfx11() {
  KernelCode kernel;
  kernel.name = "saxpy";
  kernel.entry = 0x100;
  kernel.rsrc1 = 0x60AF0080;
  kernel.rsrc2 = 0x0000009E;
  kernel.rsrc3 = 0x00000010;
  kernel.properties = 0x0408;
  kernel.kernarg_bytes = 24;
  kernel.kernarg_alignment = 8;
  kernel.wave_lanes = 32;
  kernel.user_sgprs = 15;
  kernel.user_sgpr_slots = {{UserSgpr::kernarg_pointer, 0, 2}};
  kernel.max_workgroup_lanes = 1024;
  return kernel;
}

KernelCode sample_kernel_gfx10_3() {
  KernelCode kernel = sample_kernel_gfx11();
  kernel.rsrc2 = 0x00000090;  // 8 user SGPRs, group X
  kernel.rsrc3 = 0;
  kernel.user_sgprs = 8;
  kernel.user_sgpr_slots = {
      {UserSgpr::private_segment_buffer, 0, 4}, {UserSgpr::kernarg_pointer, 4, 2}, {UserSgpr::flat_scratch_init, 6, 2}};
  return kernel;
}

KernelCode with_scratch(KernelCode kernel, std::uint32_t bytes) {
  kernel.rsrc2 |= 1;
  kernel.scratch_bytes = bytes;
  return kernel;
}

DispatchPlace sample_place(const KernelCode& kernel, const DeviceShape& shape) {
  DispatchPlace place;
  place.image_va = sample_image_va;
  place.workgroup = {64, 1, 1};
  if (kernel.scratch_bytes != 0) {
    place.scratch = *scratch_ring(shape, kernel.scratch_bytes, kernel.wave_lanes);
    place.scratch_va = sample_scratch_va;
  }
  return place;
}

Result<StreamChunk> SampleChunks::next_chunk() noexcept {
  if (taken == most_) return unavailable("no more chunks");
  if (taken == chunks_.size()) chunks_.emplace_back(dwords_, 0xDEADBEEF);
  const std::uint64_t va = first_va + apart * taken;
  return StreamChunk{chunks_[taken++], va};
}

}  // namespace kiln::amdgpu_pm4
