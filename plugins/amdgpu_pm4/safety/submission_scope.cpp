#include "amdgpu_pm4/safety/submission_scope.hpp"

namespace kiln::amdgpu_pm4 {

ProgramFacts program_facts(const KernelCode& kernel, std::uint64_t image_va, std::uint64_t image_bytes) noexcept {
  ProgramFacts facts;
  facts.entry_va = image_va + kernel.entry;
  facts.end_va = image_va + image_bytes;
  facts.wave_lanes = kernel.wave_lanes;
  facts.rsrc1 = kernel.rsrc1;
  facts.rsrc2 = kernel.rsrc2;
  facts.rsrc3 = kernel.rsrc3;
  facts.lds_bytes = kernel.lds_bytes;
  facts.scratch_bytes = kernel.scratch_bytes;
  facts.kernarg_bytes = kernel.kernarg_bytes;
  for (const UserSgprSlot& slot : kernel.user_sgpr_slots) {
    if (slot.value == UserSgpr::kernarg_pointer) facts.kernarg_sgpr = slot.first;
    if (slot.value == UserSgpr::private_segment_buffer) facts.scratch_sgpr = slot.first;
    if (slot.value == UserSgpr::flat_scratch_init && facts.scratch_sgpr == no_sgpr) facts.scratch_sgpr = slot.first;
  }
  return facts;
}

}  // namespace kiln::amdgpu_pm4
