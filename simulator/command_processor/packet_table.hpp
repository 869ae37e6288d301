// The tables of packets and events that the command processor accepts, and the functions of the packets.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "simulator/command_processor/machine.hpp"

namespace kiln::simulator {

// The packets that the command processor knows: where they may stand, how long they are, which bits of their fixed
// dwords mean something, and the function that acts on them. Everything else is refused.
//
// Thread-safety and ownership: constants.

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

// The events that EVENT_WRITE and RELEASE_MEM may name, and where.
//
// Thread-safety and ownership: constants.

inline constexpr std::uint8_t compute_partial_flush = 0x07, pipeline_statistics_start = 0x19,
                              pipeline_statistics_stop = 0x1A, pipeline_statistics_sample = 0x1E;

struct EventRule {
  std::uint8_t type = 0;
  std::uint8_t index = 0;
  std::uint8_t body = 1;  // dwords of an EVENT_WRITE that names it; 0: only RELEASE_MEM does
  Rings rings = Rings::none;
  std::string_view name;
};

std::span<const EventRule> event_rules() noexcept;
const EventRule* find_event(std::uint32_t type) noexcept;

// What the simulated command processor takes, as a page of documentation: docs/pm4-subset.md is this text.
//
// Thread-safety: any thread. Ownership: values.

std::string pm4_subset();  // Markdown, with a newline at its end

}  // namespace kiln::simulator

namespace kiln::simulator::packets {

// What each packet does; named as in the packet table, which has checked ring, length and unknown bits before.
//
// Thread-safety: the machine's one thread. Ownership: borrows both.

Outcome nop(Machine& machine, const Packet& packet);
Outcome cond_exec(Machine& machine, const Packet& packet);
Outcome set_predication(Machine& machine, const Packet& packet);
Outcome indirect_buffer(Machine& machine, const Packet& packet);

Outcome set_sh_reg(Machine& machine, const Packet& packet);
Outcome set_sh_reg_index(Machine& machine, const Packet& packet);
Outcome load_sh_reg_index(Machine& machine, const Packet& packet);
Outcome set_context_reg(Machine& machine, const Packet& packet);
Outcome set_uconfig_reg(Machine& machine, const Packet& packet);
Outcome context_control(Machine& machine, const Packet& packet);
Outcome clear_state(Machine& machine, const Packet& packet);

Outcome set_base(Machine& machine, const Packet& packet);
Outcome dispatch_direct(Machine& machine, const Packet& packet);
Outcome dispatch_indirect(Machine& machine, const Packet& packet);

// Draws: of those only the ones that expand a compressed image.
Outcome num_instances(Machine& machine, const Packet& packet);
Outcome draw_index_auto(Machine& machine, const Packet& packet);

Outcome write_data(Machine& machine, const Packet& packet);
Outcome copy_data(Machine& machine, const Packet& packet);
Outcome dma_data(Machine& machine, const Packet& packet);
Outcome atomic_mem(Machine& machine, const Packet& packet);

Outcome acquire_mem(Machine& machine, const Packet& packet);
Outcome release_mem(Machine& machine, const Packet& packet);
Outcome wait_reg_mem(Machine& machine, const Packet& packet);
Outcome event_write(Machine& machine, const Packet& packet);
Outcome pfp_sync_me(Machine& machine, const Packet& packet);

}  // namespace kiln::simulator::packets
