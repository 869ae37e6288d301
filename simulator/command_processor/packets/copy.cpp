#include <array>

#include "simulator/command_processor/packets/packets.hpp"
#include "simulator/command_processor/registers.hpp"
#include "simulator/memory/address_space.hpp"

namespace kiln::simulator {
namespace {

enum class Place : std::uint8_t { invalid = 0, reg, memory, l2, immediate, clock };

// Engines: 0 is the one that executes; 1, prefetching, exists on the graphics ring.
bool engine_known(const Machine& machine, std::uint32_t engine) {
  return engine == 0 || (engine == 1 && machine.graphics());
}

// One or two dwords from packet.body[at], body[at + 1].
struct Operand {
  Place place = Place::invalid;
  std::size_t at = 0;
};

Outcome check_address(const Packet& packet, std::size_t at, std::uint64_t bytes) {
  if (!is_high_half(packet.body[at + 1]))
    return packet.refuse(FaultKind::unknown_packet, at + 1, "an address of more than 48 bits");
  if (packet.body[at] % bytes != 0)
    return packet.refuse(FaultKind::misaligned, at, "an address that is not a multiple of " + std::to_string(bytes));
  return {};
}

std::uint64_t address_at(const Packet& packet, std::size_t at) {
  return sign_extended(joined(packet.body[at], packet.body[at + 1]));
}

// Register operands are absolute dword numbers.
Outcome register_offset(const Packet& packet, std::size_t at, std::uint32_t& offset) {
  if (packet.body[at] > 0x3'FFFF || packet.body[at + 1] != 0)
    return packet.refuse(FaultKind::unknown_register, at, "no register has that number");
  offset = packet.body[at] * 4;
  return {};
}

Outcome read_operand(Machine& machine, const Packet& packet, Operand from, std::span<std::uint32_t> words) {
  if (from.place == Place::immediate) {
    for (std::size_t at = 0; at < words.size(); ++at) words[at] = packet.body[from.at + at];
    return {};
  }
  if (from.place == Place::clock) {
    const std::uint64_t ticks = machine.gpu_clock();
    words[0] = static_cast<std::uint32_t>(ticks);
    if (words.size() == 2) words[1] = static_cast<std::uint32_t>(ticks >> 32);
    return {};
  }
  if (from.place == Place::reg) {
    std::uint32_t offset = 0;
    if (auto fault = register_offset(packet, from.at, offset)) return fault;
    for (std::uint32_t& word : words) {
      if (auto fault = read_register(machine, packet, from.at, offset, word)) return fault;
      offset += 4;
    }
    return {};
  }
  if (auto fault = check_address(packet, from.at, words.size_bytes())) return fault;
  return from.place == Place::l2 ? machine.read_l2(packet, address_at(packet, from.at), words)
                                 : machine.load(packet, address_at(packet, from.at), words);
}

Outcome write_operand(Machine& machine, const Packet& packet, Operand to, std::span<const std::uint32_t> words) {
  if (to.place == Place::reg) {
    std::uint32_t offset = 0;
    if (auto fault = register_offset(packet, to.at, offset)) return fault;
    for (const std::uint32_t word : words) {
      if (auto fault = write_register(machine, packet, to.at, offset, word)) return fault;
      offset += 4;
    }
    return {};
  }
  return to.place == Place::l2 ? machine.write_l2(packet, address_at(packet, to.at), words)
                               : machine.store(packet, address_at(packet, to.at), words);
}

Place destination(std::uint32_t selected) {
  switch (selected) {
    case 0:
      return Place::reg;
    case 2:
      return Place::l2;
    case 5:
      return Place::memory;
    default:
      return Place::invalid;
  }
}

Place source(std::uint32_t selected) {
  switch (selected) {
    case 0:
      return Place::reg;
    case 1:
      return Place::memory;
    case 2:
      return Place::l2;
    case 5:
      return Place::immediate;
    case 9:
      return Place::clock;
    default:
      return Place::invalid;
  }
}

Fault unknown_place(const Packet& packet, const char* what, std::uint32_t selected) {
  return packet.refuse(FaultKind::unknown_packet, 0,
                       std::string(what) + " " + std::to_string(selected) + " is not known");
}

}  // namespace

namespace packets {

Outcome write_data(Machine& machine, const Packet& packet) {
  const std::uint32_t control = packet.body[0];
  const Operand to{destination(field(control, 11, 8)), 1};
  if (to.place == Place::invalid) return unknown_place(packet, "DST_SEL", field(control, 11, 8));
  if (!engine_known(machine, field(control, 31, 30)))
    return unknown_place(packet, "ENGINE_SEL", field(control, 31, 30));
  const auto words = packet.body.subspan(3);
  if (to.place != Place::reg)
    if (auto fault = check_address(packet, 1, 4)) return fault;
  const bool one_address = field(control, 16, 16) != 0;
  return write_operand(machine, packet, to, one_address ? words.last(1) : words);
}

Outcome copy_data(Machine& machine, const Packet& packet) {
  const std::uint32_t control = packet.body[0];
  const Operand from{source(field(control, 3, 0)), 1};
  const Operand to{destination(field(control, 11, 8)), 3};
  if (from.place == Place::invalid) return unknown_place(packet, "SRC_SEL", field(control, 3, 0));
  if (to.place == Place::invalid) return unknown_place(packet, "DST_SEL", field(control, 11, 8));
  if (!engine_known(machine, field(control, 31, 30)))
    return unknown_place(packet, "ENGINE_SEL", field(control, 31, 30));
  std::array<std::uint32_t, 2> storage{};
  const std::span<std::uint32_t> words(storage.data(), field(control, 16, 16) != 0 ? 2 : 1);
  if (to.place != Place::reg)
    if (auto fault = check_address(packet, 3, words.size_bytes())) return fault;
  if (auto fault = read_operand(machine, packet, from, words)) return fault;
  return write_operand(machine, packet, to, words);
}

}  // namespace packets
}  // namespace kiln::simulator
