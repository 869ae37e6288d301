#include <chrono>
#include <thread>

#include "simulator/command_processor/packets/packets.hpp"
#include "simulator/command_processor/registers.hpp"
#include "simulator/command_processor/tables/event_table.hpp"
#include "simulator/memory/address_space.hpp"

namespace kiln::simulator {
namespace {

constexpr const char* functions[] = {"always", "<", "<=", "==", "!=", ">=", ">"};

bool holds(std::uint32_t function, std::uint32_t value, std::uint32_t reference) {
  switch (function) {
    case 1:
      return value < reference;
    case 2:
      return value <= reference;
    case 3:
      return value == reference;
    case 4:
      return value != reference;
    case 5:
      return value >= reference;
    case 6:
      return value > reference;
    default:
      return true;
  }
}

Outcome poll(Machine& machine, const Packet& packet, std::uint32_t& value) {
  if (field(packet.body[0], 5, 4) == 1)
    return machine.load(packet, sign_extended(joined(packet.body[1], packet.body[2])), {&value, 1});
  if (packet.body[1] > 0x3'FFFF) return packet.refuse(FaultKind::unknown_register, 1, "no register has that number");
  return read_register(machine, packet, 1, packet.body[1] * 4, value);
}

Outcome check_wait(const Machine& machine, const Packet& packet) {
  const std::uint32_t control = packet.body[0];
  if (field(control, 2, 0) == 7) return packet.refuse(FaultKind::unknown_packet, 0, "function 7 does not exist");
  if (field(control, 5, 4) > 1) return packet.refuse(FaultKind::unknown_packet, 0, "a space that does not exist");
  if (const std::uint32_t operation = field(control, 7, 6); operation != 0 && operation != 3)
    return packet.refuse(FaultKind::unknown_packet, 0, "operation " + std::to_string(operation) + " is not known");
  if (field(control, 8, 8) != 0 && !machine.graphics())
    return packet.refuse(FaultKind::unknown_packet, 0, "the compute ring has no prefetching engine");
  if (field(control, 5, 4) == 1 && packet.body[1] % 4 != 0)
    return packet.refuse(FaultKind::misaligned, 1, "an address that is not a multiple of 4");
  return {};
}

}  // namespace

namespace packets {

Outcome wait_reg_mem(Machine& machine, const Packet& packet) {
  if (auto fault = check_wait(machine, packet)) return fault;
  const std::uint32_t function = field(packet.body[0], 2, 0);
  const std::uint32_t reference = packet.body[3], mask = packet.body[4];
  const std::uint64_t began = machine.now_ns();
  for (unsigned tries = 0;; ++tries) {
    std::uint32_t value = 0;
    if (auto fault = poll(machine, packet, value)) return fault;
    if (holds(function, value & mask, reference)) return {};
    if (const char* reason = machine.stop.load()) return packet.refuse(FaultKind::planted, reason);
    if (machine.now_ns() - began >= machine.settings.wait_limit_ns)
      return packet.refuse(FaultKind::watchdog, "never satisfied: " + hexadecimal(value) + " & " + hexadecimal(mask) +
                                                    " " + functions[function] + " " + hexadecimal(reference));
    if (tries < 64)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

Outcome event_write(Machine& machine, const Packet& packet) {
  const std::uint32_t type = field(packet.body[0], 5, 0);
  const EventRule* const event = find_event(type);
  if (event == nullptr || event->body == 0)
    return packet.refuse(FaultKind::unknown_packet, 0, "event " + hexadecimal(type) + " is not known");
  if (!on_ring(event->rings, machine.ring))
    return packet.refuse(FaultKind::unknown_packet, 0, std::string(event->name) + " is not one of the compute ring");
  if (field(packet.body[0], 11, 8) != event->index)
    return packet.refuse(FaultKind::unknown_packet, 0,
                         std::string(event->name) + " has index " + std::to_string(event->index) + ", not " +
                             std::to_string(field(packet.body[0], 11, 8)));
  if (packet.body.size() != event->body)
    return packet.refuse(FaultKind::unknown_packet, std::string(event->name) + " has " + std::to_string(event->body) +
                                                        " dwords, not " + std::to_string(packet.body.size()));
  return {};
}

// Both engines of the graphics ring are one here, so they are always in step.
Outcome pfp_sync_me(Machine&, const Packet&) { return {}; }

}  // namespace packets
}  // namespace kiln::simulator
