// ProgramLoader: code objects into device memory, once each, and their kernels' dispatches recorded.
//
// Thread-safety: every method from any thread. Ownership: borrows the winsys, which outlives it; shares the scratch
// ring with the programs that use it.
#pragma once

#include <kiln/kernel.hpp>

#include <memory>
#include <mutex>
#include <span>

#include "amdgpu_pm4/device/program/program.hpp"
#include "amdgpu_pm4/recipe/device_shape.hpp"

namespace kiln::amdgpu_pm4 {

class ProgramLoader {
 public:
  ProgramLoader(Winsys& winsys, Target target, const DeviceShape& shape)
      : winsys_(winsys), target_(target), shape_(shape) {}

  // `digest`: that of the object's bytes. corrupt or unsupported: the object; invalid_argument: it is not what the
  // source says (its kernel, its workgroup, its bindings).
  Result<std::shared_ptr<const LoadedKernel>> load(const KernelSource& source, std::span<const std::byte> object,
                                                   const Digest& digest);

  // A dispatch of a loaded kernel at another place.
  Result<RecordedDispatch> record(const KernelCode& kernel, const DispatchPlace& place) const {
    return RecordedDispatch::record(kernel, shape_, place);
  }

 private:
  Result<std::unique_ptr<BufferObject>> upload(const CodeObject& object);
  Result<std::shared_ptr<BufferObject>> scratch_of(std::uint64_t bytes);

  Winsys& winsys_;
  const Target target_;
  const DeviceShape shape_;
  std::mutex mutex_;
  std::shared_ptr<BufferObject> scratch_;  // the largest that a program needed
};

}  // namespace kiln::amdgpu_pm4
