// PacketLayout: what the dwords of a packet's body mean. The decoder prints by it; the validator takes from it how long
// a body is and which bits nobody knows.
//
// Thread-safety and ownership: constants.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "amdgpu_pm4/packets/capabilities.hpp"
#include "amdgpu_pm4/packets/field.hpp"
#include "amdgpu_pm4/packets/opcode.hpp"

namespace kiln::amdgpu_pm4 {

enum class WordKind : std::uint8_t {
  invalid = 0,
  number,
  fields,
  address_low,  // the next word is the upper half
  address_high,
  register_offset,  // fields; the body's further words are values of registers from there
};

struct WordLayout {
  std::string_view name;
  WordKind kind = WordKind::invalid;
  std::span<const Field> fields = {};
  std::array<std::uint32_t, generation_count> known = {~0U, ~0U};  // bits, by column_of(generation)
};

struct PacketLayout {
  Opcode opcode = Opcode::invalid;
  std::string_view name;
  std::uint32_t least_body = 1;
  std::uint32_t most_body = largest_count;
  std::span<const WordLayout> words = {};  // the first ones; none: the body is not put into words
  std::uint32_t register_space = 0;        // byte address, where words.front() is a register_offset
};

// nullptr: an opcode without a name here.
const PacketLayout* find_layout(Opcode opcode) noexcept;

}  // namespace kiln::amdgpu_pm4
