// DispatchCheck: whether a dispatch can run with the registers as they stand. On hardware most of what is refused here
// would hang the ring, and take other processes' work with it.
//
// Thread-safety: one thread at a time. Ownership: borrows the scope and the finder. Allocates nothing, but where it
// refuses.
#pragma once

#include <kiln/status.hpp>

#include "amdgpu_pm4/safety/range_finder.hpp"
#include "amdgpu_pm4/safety/register_shadow.hpp"

namespace kiln::amdgpu_pm4 {

class DispatchCheck {
 public:
  DispatchCheck(const SubmissionScope& scope, RangeFinder& finder);

  Status check(RegisterShadow& registers, std::uint32_t initiator);

 private:
  Status check_set(const RegisterShadow& registers) const;
  Status check_program(const RegisterShadow& registers);
  Status check_resources(const RegisterShadow& registers) const;
  Status check_workgroup(const RegisterShadow& registers) const;
  Status check_scratch(const RegisterShadow& registers);
  Status check_arguments(const RegisterShadow& registers);
  Status check_initiator(std::uint32_t initiator) const;

  const SubmissionScope& scope_;
  RangeFinder& finder_;
  const Capabilities& capabilities_;
  RegisterShadow::Set required_;
  const ProgramFacts* program_ = nullptr;  // of the last check
};

}  // namespace kiln::amdgpu_pm4
