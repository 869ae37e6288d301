// Loading of programs into device memory, and the compiler that the toolchain provides.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <span>

#include <kiln/kernel.hpp>

#include "amdgpu_pm4/code_object/code_object.hpp"
#include "amdgpu_pm4/device/program.hpp"
#include "amdgpu_pm4/packets/capabilities.hpp"
#include "amdgpu_pm4/toolchain/toolchain.hpp"

namespace kiln::amdgpu_pm4 {

// A kernel of a code object that fits its source.
struct CheckedKernel {
  CodeObject object;
  KernelCode kernel;
  std::array<std::uint32_t, 3> workgroup{};
  std::vector<std::uint32_t> by_value;  // as in LoadedKernel
  ProgramInterface interface;
};

// corrupt or unsupported: the object; invalid_argument: it is not what the source says (its kernel, its workgroup, its
// bindings). Thread-safety: any thread.
Result<CheckedKernel> check_kernel(const KernelSource& source, std::span<const std::byte> object, Target target);

// ProgramLoader: code objects into device memory, once each, and their kernels' dispatches recorded.
//
// Thread-safety: every method from any thread. Ownership: borrows the winsys, which outlives it; shares the scratch
// ring with the programs that use it.
class ProgramLoader {
 public:
  ProgramLoader(Winsys& winsys, Target target, const DeviceShape& shape)
      : winsys_(winsys), target_(target), shape_(shape) {}

  // `digest`: that of the object's bytes. Errors as check_kernel().
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

// The Compiler of a device, from a Toolchain.
//
// Thread-safety: what it answers may be called from any thread. Ownership: the Compiler shares the toolchain.

// Without a toolchain (its error) every compilation answers unavailable with the reason; programs that were compiled
// before still load, under keys of their own. `patience`: of one compilation.
Compiler compiler_of(Result<std::shared_ptr<Toolchain>> toolchain, std::chrono::seconds patience);

}  // namespace kiln::amdgpu_pm4
