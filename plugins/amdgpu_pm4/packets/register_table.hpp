// Which registers there are: name, fields, generations, and whose they are to write. Serves the decoder, and is the
// validator's allow-list.
//
// Thread-safety and ownership: constants.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "amdgpu_pm4/packets/capabilities.hpp"
#include "amdgpu_pm4/packets/packet_fields.hpp"
#include "amdgpu_pm4/packets/registers.hpp"

namespace kiln::amdgpu_pm4 {

enum class RegisterOwner : std::uint8_t {
  invalid = 0,
  submitter,  // state of a dispatch: allowed
  processor,  // the command processor writes it, from a packet
  system      // the kernel's, a debugger's, another engine's
};

struct RegisterInfo {
  std::uint32_t address = 0;  // in bytes
  std::string_view name;
  RegisterOwner owner = RegisterOwner::invalid;
  std::uint8_t generations = in_both;
  std::span<const Field> fields = {};  // none: a plain number of 32 bits
};

std::span<const RegisterInfo> all_registers() noexcept;

// nullptr: not known there. Generation::invalid: as gfx11 has it, else gfx10.3.
const RegisterInfo* find_register(std::uint32_t address, Generation generation) noexcept;

// The bits that a submitter may set; 0 where the register is not the submitter's.
std::uint32_t allowed_bits(std::uint32_t address, Generation generation) noexcept;

// The same for every COMPUTE register, by (address - compute_registers) / 4.
inline constexpr std::uint32_t compute_registers = 0xB800;
inline constexpr std::size_t compute_register_count = 128;
using ComputeBits = std::array<std::uint32_t, compute_register_count>;
const ComputeBits& allowed_compute_bits(Generation generation) noexcept;

}  // namespace kiln::amdgpu_pm4
