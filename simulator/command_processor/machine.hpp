// Machine: what the packets of one job act on: registers, memory, the compute engine, and where the stream goes on.
//
// Thread-safety: one thread; `stop` is set from others. Ownership: borrows everything but the registers.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "simulator/command_processor/command_processor.hpp"
#include "simulator/command_processor/packet.hpp"
#include "simulator/command_processor/tables/register_map.hpp"

namespace kiln::simulator {

struct Machine {
  const CommandProcessorSettings& settings;
  ComputeEngine& engine;
  const RegisterMap& map;
  DeviceMemory& memory;
  const std::atomic<const char*>& stop;  // null: go on
  PacketCounters& counters;
  Ring ring;
  RegisterFile registers;
  std::optional<std::uint64_t> indirect_base;  // SET_BASE

  // Set by a packet for the loop that reads them, which clears them.
  std::optional<IndirectBuffer> enter;
  bool enter_for_good = false;  // CHAIN: without coming back
  std::uint32_t skip = 0;       // dwords after this packet

  bool gfx11() const noexcept { return settings.generation == Generation::gfx11; }
  bool graphics() const noexcept { return ring == Ring::graphics; }
  std::uint64_t now_ns() const;
  std::uint64_t gpu_clock() const;  // ticks of counter_hz

  // Dwords past L2 (see DeviceMemory::load and store), or through it. A fault names the packet.
  Outcome load(const Packet& packet, std::uint64_t address, std::span<std::uint32_t> out);
  Outcome store(const Packet& packet, std::uint64_t address, std::span<const std::uint32_t> words);
  Outcome read_l2(const Packet& packet, std::uint64_t address, std::span<std::uint32_t> out);
  Outcome write_l2(const Packet& packet, std::uint64_t address, std::span<const std::uint32_t> words);
};

// Adds which packet it was; the second also its header, as the word that a fault of memory is about.
Fault in_packet(Fault fault, const Packet& packet);
Fault of_packet(Fault fault, const Packet& packet);

}  // namespace kiln::simulator
