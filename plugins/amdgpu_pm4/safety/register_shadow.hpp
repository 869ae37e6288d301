// RegisterShadow: the COMPUTE registers as a submission's own packets have set them. What another submission left there
// counts as not set.
//
// Thread-safety: one thread at a time. Ownership: value.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>

#include "amdgpu_pm4/packets/registers/register_table.hpp"

namespace kiln::amdgpu_pm4 {

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

}  // namespace kiln::amdgpu_pm4
