#include "simulator/command_processor/machine.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace kiln::simulator {

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

}  // namespace kiln::simulator
