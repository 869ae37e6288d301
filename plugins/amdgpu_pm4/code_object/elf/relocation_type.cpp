#include "amdgpu_pm4/code_object/elf/relocation_type.hpp"

#include <array>

namespace kiln::amdgpu_pm4 {

std::uint32_t relocation_bytes(std::uint32_t type) noexcept {
  switch (type) {
    case relocation_abs64:
    case relocation_rel64:
    case relocation_relative64:
      return 8;
    case relocation_rel32:
    case relocation_rel32_lo:
    case relocation_rel32_hi:
      return 4;
    default:
      return 0;
  }
}

std::string relocation_name(std::uint32_t type) {
  static constexpr std::array<const char*, 15> names = {
      "NONE",          "ABS32_LO",      "ABS32_HI", "ABS64",    "REL32", "REL64",      "ABS32", "GOTPCREL",
      "GOTPCREL32_LO", "GOTPCREL32_HI", "REL32_LO", "REL32_HI", nullptr, "RELATIVE64", "REL16"};
  std::string text = "relocation " + std::to_string(type);
  if (type < names.size() && names[type] != nullptr) text += std::string(" (R_AMDGPU_") + names[type] + ")";
  return text;
}

}  // namespace kiln::amdgpu_pm4
