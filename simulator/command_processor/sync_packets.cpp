#include <array>
#include <chrono>
#include <thread>

#include "simulator/command_processor/machine.hpp"
#include "simulator/command_processor/packet_table.hpp"
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

// The drivers read the counters of the graphics stages too.
Outcome write_statistics(Machine& machine, const Packet& packet) {
  constexpr std::size_t counters = 11;
  const std::uint64_t address = sign_extended(joined(packet.body[1], packet.body[2]));
  if (address % 8 != 0) return packet.refuse(FaultKind::misaligned, 1, "an address that is not a multiple of 8");
  std::array<std::uint32_t, 2 * counters> words{};
  words[2 * counters - 2] = static_cast<std::uint32_t>(machine.statistics.invocations);
  words[2 * counters - 1] = static_cast<std::uint32_t>(machine.statistics.invocations >> 32U);
  return machine.store(packet, address, words);
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
    if (holds(function, value & mask, reference)) {
      if (machine.released) machine.running = false;  // it is taken for a wait for the release
      return {};
    }
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
  if (type == compute_partial_flush) machine.running = false;
  if (type == pipeline_statistics_start) machine.statistics.counting = true;
  if (type == pipeline_statistics_stop) machine.statistics.counting = false;
  return type == pipeline_statistics_sample ? write_statistics(machine, packet) : Outcome{};
}

// Both engines of the graphics ring are one here, so they are always in step.
Outcome pfp_sync_me(Machine&, const Packet&) { return {}; }

}  // namespace packets

namespace {

enum class L2Action : std::uint8_t { invalid = 0, nothing, write_back, invalidate, both };

// DISCARD is an invalidation that writes nothing back, also beside WB.
L2Action l2_action(bool write_back, bool invalidate, bool discard) {
  if (discard) return L2Action::invalidate;
  if (write_back && invalidate) return L2Action::both;
  if (write_back) return L2Action::write_back;
  return invalidate ? L2Action::invalidate : L2Action::nothing;
}

void act_on_l2(Machine& machine, L2Action action) {
  if (action == L2Action::write_back || action == L2Action::both) machine.memory.write_back_l2();
  if (action == L2Action::invalidate || action == L2Action::both) machine.memory.invalidate_l2();
}

bool set(std::uint32_t dword, unsigned bit) { return field(dword, bit, bit) != 0; }

// gfx11's pixel wait sync: RELEASE_MEM counts up at the end of its work, ACQUIRE_MEM waits for the count. Work has
// ended before the next packet is read here, so only the form is checked.
Outcome check_counter_wait(const Machine& machine, const Packet& packet) {
  // Bit 31 says which of the graphics ring's two engines waits. They are one here, and the compute ring has no second
  // one: Mesa sets the bit there too.
  const bool enabled = set(packet.body[5], 31);
  if (!enabled) {
    if (field(packet.body[0], 30, 0) != 0)
      return packet.refuse(FaultKind::unknown_packet, 0, "fields of a counter wait without PWS_ENA");
    return {};
  }
  if (!machine.graphics()) return packet.refuse(FaultKind::unknown_packet, 5, "PWS_ENA is for the graphics ring");
  if (!set(packet.body[0], 17)) return packet.refuse(FaultKind::unknown_packet, 0, "PWS_ENA without PWS_ENA2");
  if (field(packet.body[0], 13, 11) > 5 || field(packet.body[0], 15, 14) > 2)
    return packet.refuse(FaultKind::unknown_packet, 0, "a stage or a counter that does not exist");
  return {};
}

Outcome check_event(const Machine& machine, const Packet& packet) {
  const std::uint32_t type = field(packet.body[0], 5, 0);
  const EventRule* const event = find_event(type);
  if (event == nullptr || event->body != 0 || !on_ring(event->rings, machine.ring))
    return packet.refuse(FaultKind::unknown_packet, 0, "event " + hexadecimal(type) + " is not one of a release here");
  if (field(packet.body[0], 11, 8) != event->index)
    return packet.refuse(FaultKind::unknown_packet, 0,
                         std::string(event->name) + " has index " + std::to_string(event->index) + ", not " +
                             std::to_string(field(packet.body[0], 11, 8)));
  return {};
}

Outcome write_release(Machine& machine, const Packet& packet) {
  const std::uint32_t destination = field(packet.body[1], 17, 16);
  const std::uint32_t data = field(packet.body[1], 31, 29);
  if (data == 0) return {};
  if (data > 3)
    return packet.refuse(FaultKind::unknown_packet, 1, "DATA_SEL " + std::to_string(data) + " is not known");
  if (destination > 1)
    return packet.refuse(FaultKind::unknown_packet, 1, "DST_SEL " + std::to_string(destination) + " is not known");
  std::array<std::uint32_t, 2> words{packet.body[4], packet.body[5]};
  if (data == 3) {
    const std::uint64_t ticks = machine.gpu_clock();
    words = {static_cast<std::uint32_t>(ticks), static_cast<std::uint32_t>(ticks >> 32)};
  }
  const std::span<const std::uint32_t> written(words.data(), data == 1 ? 1 : 2);
  const std::uint64_t address = sign_extended(joined(packet.body[2], packet.body[3]));
  if (address % written.size_bytes() != 0)
    return packet.refuse(FaultKind::misaligned, 2,
                         "an address that is not a multiple of " + std::to_string(written.size_bytes()));
  return destination == 1 ? machine.write_l2(packet, address, written) : machine.store(packet, address, written);
}

}  // namespace

namespace packets {

Outcome acquire_mem(Machine& machine, const Packet& packet) {
  if (packet.body[1] != 0xFFFF'FFFF || packet.body[2] < 0x00FF'FFFF)
    return packet.refuse(FaultKind::unknown_packet, 1, "a range that is not the whole of memory");
  if (packet.body[2] > 0x00FF'FFFF && packet.body[2] != 0x01FF'FFFF)
    return packet.refuse(FaultKind::unknown_packet, 2, "a range that is not the whole of memory");
  if (auto fault = check_counter_wait(machine, packet)) return fault;
  if (machine.released && machine.gfx11() && set(packet.body[5], 31)) machine.running = false;
  const std::uint32_t caches = packet.body[6];
  if (field(caches, 1, 0) > 1) return packet.refuse(FaultKind::unknown_packet, 6, "GLI_INV of a range");
  if (field(caches, 17, 16) == 3) return packet.refuse(FaultKind::unknown_packet, 6, "SEQ 3");
  if (set(caches, 4) && !set(caches, 5)) return packet.refuse(FaultKind::bad_state, 6, "GLM_WB without GLM_INV");
  act_on_l2(machine, l2_action(set(caches, 15), set(caches, 14), set(caches, 13)));
  if (field(caches, 1, 0) == 1) machine.engine.forget_code();
  return {};
}

Outcome release_mem(Machine& machine, const Packet& packet) {
  const std::uint32_t control = packet.body[0];
  if (auto fault = check_event(machine, packet)) return fault;
  if (field(control, 18, 17) != 0) return packet.refuse(FaultKind::unknown_packet, 0, "GL2_RANGE of a range");
  if (field(control, 23, 22) == 3) return packet.refuse(FaultKind::unknown_packet, 0, "SEQ 3");
  if (set(control, 12) && !set(control, 13)) return packet.refuse(FaultKind::bad_state, 0, "GLM_WB without GLM_INV");
  if (set(control, 31) && !machine.graphics())
    return packet.refuse(FaultKind::unknown_packet, 0, "PWS_ENABLE is for the graphics ring");
  if (const std::uint32_t interrupt = field(packet.body[1], 26, 24); interrupt != 0 && interrupt != 3)
    return packet.refuse(FaultKind::bad_state, 1,
                         "INT_SEL " + std::to_string(interrupt) + " asks for an interrupt, which is the kernel's");
  act_on_l2(machine, l2_action(set(control, 21), set(control, 20), set(control, 19)));
  machine.released = true;
  return write_release(machine, packet);
}

}  // namespace packets

}  // namespace kiln::simulator
