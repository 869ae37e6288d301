#include "simulator/command_processor/packets/packets.hpp"
#include "simulator/memory/address_space.hpp"

namespace kiln::simulator::packets {

Outcome nop(Machine&, const Packet&) { return {}; }

Outcome cond_exec(Machine& machine, const Packet& packet) {
  std::uint32_t condition = 0;
  const std::uint64_t address = sign_extended(joined(packet.body[0], packet.body[1]));
  if (auto fault = machine.load(packet, address, {&condition, 1})) return fault;
  if (condition == 0) machine.skip = packet.body[3];
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
