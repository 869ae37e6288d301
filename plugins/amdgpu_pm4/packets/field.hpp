// Field: a run of bits of a dword, with its name. The one description of a register's or packet's bits: encoders put,
// the decoder names, the validator checks what is left over.
//
// Thread-safety and ownership: constants; names are literals.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace kiln::amdgpu_pm4 {

struct ValueName {
  std::uint32_t value = 0;
  std::string_view name;
};

// Which generations have a field or register: a set of bits.
inline constexpr std::uint8_t in_gfx10_3 = 1;
inline constexpr std::uint8_t in_gfx11 = 2;
inline constexpr std::uint8_t in_both = in_gfx10_3 | in_gfx11;

struct Field {
  std::string_view name;
  std::uint8_t low = 0;
  std::uint8_t width = 0;
  std::span<const ValueName> values = {};  // that have names
  std::uint8_t generations = in_both;

  constexpr std::uint32_t largest() const noexcept { return width >= 32 ? ~0U : (1U << width) - 1; }
  constexpr std::uint32_t mask() const noexcept { return largest() << low; }
  constexpr bool holds(std::uint64_t value) const noexcept { return value <= largest(); }
  constexpr std::uint32_t of(std::uint32_t word) const noexcept { return word >> low & largest(); }
  // REQUIRES: holds(value). The bits beside the field stay 0 in any case.
  constexpr std::uint32_t put(std::uint32_t value) const noexcept { return (value & largest()) << low; }
};

// Every bit that some field of a generation in `generations` has.
constexpr std::uint32_t known_bits(std::span<const Field> fields, std::uint8_t generations) noexcept {
  std::uint32_t bits = 0;
  for (const Field& field : fields) {
    if ((field.generations & generations) != 0) bits |= field.mask();
  }
  return bits;
}

}  // namespace kiln::amdgpu_pm4
