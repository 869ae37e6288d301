#include "device/fake_kernels.hpp"

#include <catch2/catch.hpp>

namespace kiln::amdgpu_pm4::fake {

std::shared_ptr<BufferObject> make_buffer(Winsys& winsys, BufferUse use, std::uint64_t bytes) {
  auto made = winsys.create_buffer({bytes, 0, placement_of(use, winsys.facts().memory), access_of(use)});
  REQUIRE(made.has_value());
  return std::move(made).value();
}

std::shared_ptr<const LoadedKernel> make_kernel(Winsys& winsys, const std::string& name, std::vector<Access> bindings,
                                                std::uint32_t scratch_bytes) {
  KernelCode kernel = sample_kernel_gfx11();
  if (scratch_bytes != 0) kernel = with_scratch(kernel, scratch_bytes);
  kernel.name = name;
  kernel.kernarg_bytes = static_cast<std::uint32_t>(8 * bindings.size());
  kernel.arguments.clear();
  for (std::uint32_t i = 0; i < bindings.size(); ++i) {
    kernel.arguments.push_back({8 * i, 8, ArgumentKind::global_buffer, "b" + std::to_string(i), "global_buffer"});
  }
  constexpr std::uint64_t image_bytes = 2048;
  auto code = winsys.create_buffer({image_bytes + 256, image_alignment,
                                    placement_of(BufferUse::code, winsys.facts().memory), access_of(BufferUse::code)});
  REQUIRE(code.has_value());
  DispatchPlace place;
  place.image_va = (*code)->address();
  place.workgroup = {64, 1, 1};
  std::shared_ptr<BufferObject> scratch;
  if (scratch_bytes != 0) {
    place.scratch = *scratch_ring(navi31, scratch_bytes, kernel.wave_lanes);
    scratch = make_buffer(winsys, BufferUse::scratch, place.scratch.bytes);
    place.scratch_va = scratch->address();
  }
  auto recorded = RecordedDispatch::record(kernel, navi31, place);
  INFO((recorded ? std::string() : recorded.error().text()));
  REQUIRE(recorded.has_value());
  const ProgramFacts facts = program_facts(kernel, place.image_va, image_bytes);
  return std::make_shared<LoadedKernel>(LoadedKernel{{},
                                                     sha256(name),
                                                     quarantine_key_of(sha256(name), kernel.name),
                                                     5,
                                                     kernel,
                                                     place.workgroup,
                                                     std::move(bindings),
                                                     std::move(code).value(),
                                                     std::move(scratch),
                                                     std::move(recorded).value(),
                                                     facts});
}

}  // namespace kiln::amdgpu_pm4::fake
