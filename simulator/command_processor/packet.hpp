// Packet: one type 3 packet of an indirect buffer, its length checked, as the packets' functions are handed it.
//
// Thread-safety and ownership: a view; its dwords live for the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "simulator/fault.hpp"

namespace kiln::simulator {

// Bits [high:low] of a dword.
constexpr std::uint32_t field(std::uint32_t dword, unsigned high, unsigned low) noexcept {
  return (dword >> low) & (0xFFFF'FFFFU >> (31 - (high - low)));
}

constexpr std::uint64_t joined(std::uint32_t low, std::uint32_t high) noexcept {
  return std::uint64_t{high} << 32 | low;
}

// Whether a dword can be the high half of an address: 16 bits, or what the sign's extension makes of them, as drivers
// write it.
constexpr bool is_high_half(std::uint32_t dword) noexcept { return dword <= 0xFFFF || (dword >> 15) == 0x1FFFF; }

std::string hexadecimal(std::uint64_t value);  // "0x1f"

struct Packet {
  std::string_view name;
  std::uint64_t address = 0;  // of its header
  std::uint32_t header = 0;
  std::span<const std::uint32_t> body;

  bool compute_type() const noexcept { return (header & 2) != 0; }

  // Faults at this packet: about its header, or about the dword of its body with that index.
  Fault refuse(FaultKind kind, const std::string& why) const;
  Fault refuse(FaultKind kind, std::size_t index, const std::string& why) const;
};

using Outcome = std::optional<Fault>;  // nothing: it went well

}  // namespace kiln::simulator
