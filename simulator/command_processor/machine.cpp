#include "simulator/command_processor/machine.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

namespace kiln::simulator {

std::string hexadecimal(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

Fault Packet::refuse(FaultKind kind, const std::string& why) const {
  return {kind, address, header, std::string(name) + ": " + why};
}

Fault Packet::refuse(FaultKind kind, std::size_t index, const std::string& why) const {
  return {kind, address, body[index], std::string(name) + ", dword " + std::to_string(index + 1) + ": " + why};
}

std::uint64_t Machine::now_ns() const {
  if (settings.clock_ns) return settings.clock_ns();
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

std::uint64_t Machine::gpu_clock() const {
  constexpr std::uint64_t second = 1'000'000'000;
  const std::uint64_t now = now_ns();  // in two parts: the product of the whole would not fit 64 bits
  return now / second * settings.counter_hz + now % second * settings.counter_hz / second;
}

Fault in_packet(Fault fault, const Packet& packet) {
  fault.reason += " (" + std::string(packet.name) + " at " + hexadecimal(packet.address) + ")";
  return fault;
}

Fault of_packet(Fault fault, const Packet& packet) {
  fault = in_packet(std::move(fault), packet);
  fault.dword = packet.header;
  return fault;
}

Outcome Machine::load(const Packet& packet, std::uint64_t address, std::span<std::uint32_t> out) {
  auto fault = memory.load(address, std::as_writable_bytes(out));
  if (fault) return of_packet(std::move(*fault), packet);
  return {};
}

Outcome Machine::store(const Packet& packet, std::uint64_t address, std::span<const std::uint32_t> words) {
  auto fault = memory.store(address, std::as_bytes(words));
  if (fault) return of_packet(std::move(*fault), packet);
  return {};
}

Outcome Machine::read_l2(const Packet& packet, std::uint64_t address, std::span<std::uint32_t> out) {
  for (std::uint32_t& word : out) {
    Page page;
    if (auto fault = memory.page(address, Access::read, page)) return of_packet(std::move(*fault), packet);
    std::memcpy(&word, page.data + (address - page.address), sizeof word);
    address += sizeof word;
  }
  return {};
}

Outcome Machine::write_l2(const Packet& packet, std::uint64_t address, std::span<const std::uint32_t> words) {
  for (const std::uint32_t word : words) {
    Page page;
    if (auto fault = memory.page(address, Access::write, page)) return of_packet(std::move(*fault), packet);
    std::memcpy(page.data + (address - page.address), &word, sizeof word);
    page.mark(address, sizeof word);
    address += sizeof word;
  }
  return {};
}

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
