#include <array>

#include "simulator/command_processor/machine.hpp"
#include "simulator/command_processor/packet_table.hpp"
#include "simulator/memory/address_space.hpp"

namespace kiln::simulator {
namespace {

// Registers from the packet's first dword on; the values are its body after that.
Outcome set_registers(Machine& machine, const Packet& packet, std::uint32_t space, std::uint32_t end) {
  std::uint32_t offset = space + field(packet.body[0], 15, 0) * 4;
  for (std::size_t at = 1; at < packet.body.size(); ++at, offset += 4) {
    if (offset >= end)
      return packet.refuse(FaultKind::unknown_register, at, hexadecimal(offset) + " is past the registers it can set");
    if (auto fault = write_register(machine, packet, at, offset, packet.body[at])) return fault;
  }
  return {};
}

}  // namespace

namespace packets {

Outcome set_sh_reg(Machine& machine, const Packet& packet) {
  return set_registers(machine, packet, register_space::shader, register_space::shader_end);
}

Outcome set_sh_reg_index(Machine& machine, const Packet& packet) {
  if (field(packet.body[0], 31, 28) != 3)
    return packet.refuse(
        FaultKind::unknown_packet, 0,
        "index " + std::to_string(field(packet.body[0], 31, 28)) + " where only 3, CU masks, is known");
  for (std::size_t at = 1; at < packet.body.size(); ++at) {
    const std::uint32_t offset =
        register_space::shader + (field(packet.body[0], 15, 0) + static_cast<std::uint32_t>(at - 1)) * 4;
    const RegisterRule* const rule = machine.map.find(offset);
    if (rule == nullptr || !rule->cu_mask)
      return packet.refuse(FaultKind::unknown_register, at, "register " + hexadecimal(offset) + " holds no CU mask");
    if (auto fault = write_register(machine, packet, at, offset, packet.body[at])) return fault;
  }
  return {};
}

Outcome load_sh_reg_index(Machine& machine, const Packet& packet) {
  if (field(packet.body[0], 1, 0) != 0)
    return packet.refuse(
        FaultKind::unknown_packet, 0,
        "index " + std::to_string(field(packet.body[0], 1, 0)) + " where only 0, an address, is known");
  std::uint64_t address = sign_extended(joined(packet.body[0], packet.body[1]));
  std::uint32_t offset = register_space::shader + packet.body[2] * 4;
  for (std::uint32_t left = packet.body[3]; left != 0; --left, address += 4, offset += 4) {
    if (offset >= register_space::shader_end)
      return packet.refuse(FaultKind::unknown_register, 2, hexadecimal(offset) + " is past the registers it can set");
    std::uint32_t value = 0;
    if (auto fault = machine.load(packet, address, {&value, 1})) return fault;
    if (auto fault = write_register(machine, packet, 2, offset, value)) return fault;
  }
  return {};
}

Outcome set_context_reg(Machine& machine, const Packet& packet) {
  return set_registers(machine, packet, register_space::context, register_space::context_end);
}

Outcome set_uconfig_reg(Machine& machine, const Packet& packet) {
  return set_registers(machine, packet, register_space::uconfig, register_space::uconfig_end);
}

// The table has left no bit but those that say that nothing is loaded and nothing is shadowed.
Outcome context_control(Machine&, const Packet&) { return {}; }

Outcome clear_state(Machine& machine, const Packet&) {
  machine.registers.clear_context();
  return {};
}

}  // namespace packets

}  // namespace kiln::simulator

namespace kiln::simulator::packets {

Outcome nop(Machine&, const Packet&) { return {}; }

Outcome cond_exec(Machine& machine, const Packet& packet) {
  std::uint32_t condition = 0;
  const std::uint64_t address = sign_extended(joined(packet.body[0], packet.body[1]));
  if (auto fault = machine.load(packet, address, {&condition, 1})) return fault;
  if (condition == 0) machine.skip = packet.body[3];
  return {};
}

// The condition is read now, once. Which draws a query has seen is not known here.
Outcome set_predication(Machine& machine, const Packet& packet) {
  constexpr std::uint32_t clear = 0, bool64 = 3, bool32 = 4;
  const std::uint32_t operation = field(packet.body[0], 18, 16);
  if (operation == clear) {
    machine.predicate = true;
    return {};
  }
  if (operation != bool64 && operation != bool32)
    return packet.refuse(FaultKind::unknown_packet, 0,
                         "operation " + std::to_string(operation) + ", a query of draws, is not modelled");
  const std::uint64_t address = sign_extended(joined(packet.body[1], packet.body[2]));
  const std::size_t dwords = operation == bool64 ? 2 : 1;
  std::array<std::uint32_t, 2> condition{};
  if (auto fault = machine.load(packet, address, std::span(condition).first(dwords))) return fault;
  const bool where_true = field(packet.body[0], 8, 8) != 0;
  machine.predicate = (condition[0] != 0 || condition[1] != 0) == where_true;
  return {};
}

Outcome indirect_buffer(Machine& machine, const Packet& packet) {
  const bool chain = field(packet.body[2], 20, 20) != 0;
  const std::uint64_t dwords = field(packet.body[2], 19, 0);
  if (!chain && !machine.graphics())
    return packet.refuse(FaultKind::bad_state, 2, "a call without CHAIN is only for the graphics ring");
  if (dwords == 0) return packet.refuse(FaultKind::bad_state, 2, "an indirect buffer of no dwords");
  machine.enter = IndirectBuffer{sign_extended(joined(packet.body[0], packet.body[1])), dwords * 4};
  machine.enter_for_good = chain;
  return {};
}

}  // namespace kiln::simulator::packets
