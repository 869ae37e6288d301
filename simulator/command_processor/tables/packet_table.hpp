// The packets that the command processor knows: where they may stand, how long they are, which bits of their fixed
// dwords mean something, and the function that acts on them. Everything else is refused.
//
// Thread-safety and ownership: constants.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "simulator/command_processor/machine.hpp"

namespace kiln::simulator {

struct BodyLength {  // in dwords after the header
  std::uint16_t least = 0;
  std::uint16_t most = 0;  // 0: not on that ring
};

struct PacketRule {
  std::uint8_t opcode = 0;
  std::string_view name;
  BodyLength graphics;
  BodyLength compute;
  Outcome (*act)(Machine&, const Packet&) = nullptr;
  std::string_view what;  // for the documentation
  // Bits that may be set in the first dwords of the body; further dwords are free.
  std::array<std::uint32_t, 8> known_gfx10_3{};
  std::array<std::uint32_t, 8> known_gfx11{};
};

std::span<const PacketRule> packet_rules() noexcept;
const PacketRule* find_packet(std::uint8_t opcode) noexcept;

// Opcodes that exist and are refused here with their name, because they draw or belong to the kernel.
std::string_view refused_packet(std::uint8_t opcode) noexcept;  // empty: an unknown one

}  // namespace kiln::simulator
