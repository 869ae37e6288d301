// Pm4Program: one kernel of a code object, in device memory and ready to be dispatched.
//
// Thread-safety: immutable. Ownership: shares the loaded kernel with the submissions in flight that run it.
#pragma once

#include <kiln/digest.hpp>
#include <kiln/program.hpp>
#include <kiln/program_interface.hpp>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "amdgpu_pm4/code_object/kernel_code.hpp"
#include "amdgpu_pm4/recipe/recorded_dispatch.hpp"
#include "amdgpu_pm4/safety/submission_scope.hpp"
#include "amdgpu_pm4/winsys/winsys.hpp"

namespace kiln::amdgpu_pm4 {

struct LoadedKernel {
  std::vector<std::byte> object;  // the code object's bytes, for serialize()
  Digest digest;                  // of them
  std::uint32_t version = 0;      // of the code object format
  KernelCode kernel;
  std::array<std::uint32_t, 3> workgroup{};
  std::vector<Access> bindings;  // one an argument
  std::unique_ptr<BufferObject> code;
  std::shared_ptr<BufferObject> scratch;  // null: the kernel has none
  RecordedDispatch recorded;
  ProgramFacts facts;  // for the check before each submission
  // One a binding: 0, or the bytes of an argument that is passed by value. Empty: none is.
  std::vector<std::uint32_t> by_value{};
  ProgramInterface interface {};  // its arguments, hidden ones left out
  DispatchPlace place{};          // for dispatches with local memory beside the kernel's own

  std::uint32_t value_bytes(std::size_t binding) const noexcept { return by_value.empty() ? 0 : by_value[binding]; }
  // "kernel 'saxpy' (program 3f2a90c1…)", for messages.
  std::string name() const;
};

class Pm4Program final : public Program {
 public:
  Pm4Program(const Winsys& owner, std::shared_ptr<const LoadedKernel> loaded)
      : owner_(&owner), loaded_(std::move(loaded)) {}

  std::uint64_t charge() const noexcept override;
  const ProgramInterface* interface(const KernelSource&) const noexcept override { return &loaded_->interface; }
  const Winsys* owner() const noexcept { return owner_; }
  const std::shared_ptr<const LoadedKernel>& loaded() const noexcept { return loaded_; }

 private:
  const Winsys* owner_;
  std::shared_ptr<const LoadedKernel> loaded_;
};

}  // namespace kiln::amdgpu_pm4
