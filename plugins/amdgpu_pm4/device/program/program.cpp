#include "amdgpu_pm4/device/program/program.hpp"

namespace kiln::amdgpu_pm4 {

std::string LoadedKernel::name() const {
  return "kernel '" + kernel.name + "' (program " + digest.hex().substr(0, 12) + ")";
}

// Its bytes for serialize(), and its image in device memory.
std::uint64_t Pm4Program::charge() const noexcept { return loaded_->object.size() + loaded_->code->bytes(); }

}  // namespace kiln::amdgpu_pm4
