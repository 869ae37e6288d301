// The relocations of AMD GPU code: their numbers, names, and the bytes that those applied here write.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <cstdint>
#include <string>

namespace kiln::amdgpu_pm4 {

inline constexpr std::uint32_t relocation_none = 0;
inline constexpr std::uint32_t relocation_abs64 = 3;  // the symbol's address
inline constexpr std::uint32_t relocation_rel32 = 4;  // its distance from the word relocated
inline constexpr std::uint32_t relocation_rel64 = 5;
inline constexpr std::uint32_t relocation_rel32_lo = 10;    // the distance's lower half
inline constexpr std::uint32_t relocation_rel32_hi = 11;    // its upper half
inline constexpr std::uint32_t relocation_relative64 = 13;  // linked files: the addend, from where the file lies

// 0: not applied here.
std::uint32_t relocation_bytes(std::uint32_t type) noexcept;
std::string relocation_name(std::uint32_t type);  // "relocation 7 (R_AMDGPU_GOTPCREL)"

}  // namespace kiln::amdgpu_pm4
