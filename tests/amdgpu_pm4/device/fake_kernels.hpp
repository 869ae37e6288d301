// Kernels loaded into a fake device's memory without a compiler: with the numbers that one gives such kernels.
#pragma once

#include "amdgpu_pm4/device/submission.hpp"
#include "amdgpu_pm4/winsys/winsys.hpp"
#include "recipe/sample.hpp"

namespace kiln::amdgpu_pm4::fake {

// Takes one buffer a binding. Equal names, equal digests.
std::shared_ptr<const LoadedKernel> make_kernel(Winsys& winsys, const std::string& name, std::vector<Access> bindings,
                                                std::uint32_t scratch_bytes = 0);
std::shared_ptr<BufferObject> make_buffer(Winsys& winsys, BufferUse use = BufferUse::storage,
                                          std::uint64_t bytes = 4096);

}  // namespace kiln::amdgpu_pm4::fake
