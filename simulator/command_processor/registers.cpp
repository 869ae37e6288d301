#include "simulator/command_processor/registers.hpp"

namespace kiln::simulator {
namespace {

const RegisterRule* usable(const Machine& machine, std::uint32_t offset) {
  const RegisterRule* const rule = machine.map.find(offset);
  return rule != nullptr && on_ring(rule->rings, machine.ring) ? rule : nullptr;
}

std::string called(const RegisterRule& rule, std::uint32_t offset) {
  return hexadecimal(offset) + " (" + std::string(rule.name) + ")";
}

Fault no_such(const Machine& machine, const Packet& packet, std::size_t index, std::uint32_t offset) {
  const RegisterRule* const rule = machine.map.find(offset);
  if (rule != nullptr)
    return packet.refuse(FaultKind::unknown_register, index,
                         "register " + called(*rule, offset) + " is not one of the compute ring");
  return packet.refuse(
      FaultKind::unknown_register, index,
      "register " + hexadecimal(offset) + " is not known on " + (machine.gfx11() ? "gfx11" : "gfx10.3"));
}

}  // namespace

Outcome write_register(Machine& machine, const Packet& packet, std::size_t index, std::uint32_t offset,
                       std::uint32_t value) {
  const RegisterRule* const rule = usable(machine, offset);
  if (rule == nullptr) return no_such(machine, packet, index, offset);
  if (rule->treatment == Treatment::refused)
    return packet.refuse(FaultKind::unknown_register, index,
                         "register " + called(*rule, offset) + " is not for command streams to write");
  if (rule->treatment == Treatment::zero_only && value != 0)
    return packet.refuse(FaultKind::unknown_register, index,
                         "register " + called(*rule, offset) + " is only known with 0, not with " + hexadecimal(value));
  machine.registers.set(offset, value);
  return {};
}

Outcome read_register(Machine& machine, const Packet& packet, std::size_t index, std::uint32_t offset,
                      std::uint32_t& value) {
  const RegisterRule* const rule = usable(machine, offset);
  if (rule == nullptr) return no_such(machine, packet, index, offset);
  if (rule->treatment == Treatment::refused)
    return packet.refuse(FaultKind::unknown_register, index,
                         "register " + called(*rule, offset) + " is not for command streams to read");
  value = machine.registers.get(offset);
  return {};
}

}  // namespace kiln::simulator
