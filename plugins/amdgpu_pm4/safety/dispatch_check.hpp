// Checks of dispatches, against the registers as the stream has set them.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>

#include <kiln/status.hpp>

#include "amdgpu_pm4/packets/register_table.hpp"
#include "amdgpu_pm4/safety/submission_scope.hpp"

namespace kiln::amdgpu_pm4 {

// RegisterShadow: the COMPUTE registers as a submission's own packets have set them. What another submission left there
// counts as not set.
//
// Thread-safety: one thread at a time. Ownership: value.

// REQUIRES: a COMPUTE register.
constexpr std::size_t shadow_index(Register which) noexcept { return (address_of(which) - compute_registers) / 4; }

class RegisterShadow {
 public:
  using Set = std::bitset<compute_register_count>;

  void set(std::size_t index, std::uint32_t value) noexcept {
    // Arguments differ from dispatch to dispatch; what else changes makes the program's check due again.
    if (index < first_user_data && (values_[index] != value || !set_.test(index))) changed_ = true;
    values_[index] = value;
    set_.set(index);
  }

  std::uint32_t operator[](Register which) const noexcept { return values_[shadow_index(which)]; }
  std::uint32_t at(std::size_t index) const noexcept { return values_[index]; }
  std::uint32_t user_data(std::uint32_t sgpr) const noexcept { return values_[first_user_data + sgpr]; }
  const Set& all_set() const noexcept { return set_; }

  bool changed() const noexcept { return changed_; }  // anything but USER_DATA since unchanged_from_here()
  void unchanged_from_here() noexcept { changed_ = false; }

 private:
  static constexpr std::size_t first_user_data = shadow_index(Register::user_data_0);

  std::array<std::uint32_t, compute_register_count> values_{};
  Set set_;
  bool changed_ = true;
};

// DispatchCheck: whether a dispatch can run with the registers as they stand. On hardware most of what is refused here
// would hang the ring, and take other processes' work with it.
//
// Thread-safety: one thread at a time. Ownership: borrows the scope and the finder. Allocates nothing, but where it
// refuses.
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
