// The state of the command processor: its registers, and what they mean.
//
// The registers that command streams may write, by generation and ring, and a file of their values.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/command_processor/command_processor.hpp"
#include "simulator/fault.hpp"

namespace kiln::simulator {

// The registers that command streams may write, by generation and ring, and a file of their values.
//
// Registers are known by their byte offset, as register headers name them. What is in no rule is refused: privileged
// registers, performance counters, and those of the other generation.
//
// Thread-safety: the rules never change; a RegisterFile is its owner's. Ownership: values.

enum class Treatment : std::uint8_t {
  invalid = 0,
  dispatch,   // read by dispatches
  state,      // kept; says nothing to compute work
  zero_only,  // kept; another value asks for what is not modelled
  refused     // exists, but not for command streams
};

enum class Rings : std::uint8_t { none = 0, graphics = 1, compute = 2, both = 3 };

struct RegisterRule {
  std::uint32_t first = 0;  // byte offsets, both included
  std::uint32_t last = 0;
  bool gfx10_3 = false;
  bool gfx11 = false;
  Rings rings = Rings::none;
  Treatment treatment = Treatment::invalid;
  bool cu_mask = false;  // SET_SH_REG_INDEX writes it, through the kernel's own mask
  std::string_view name;
};

std::span<const RegisterRule> register_rules() noexcept;

bool on_ring(Rings rings, Ring ring) noexcept;

class RegisterMap {
 public:
  explicit RegisterMap(Generation generation);
  // Null: no such register here.
  const RegisterRule* find(std::uint32_t offset) const noexcept;

 private:
  std::vector<const RegisterRule*> rules_;  // by dword, over the three spaces
};

// The spaces of SET_*_REG, as far as rules may reach.
namespace register_space {
constexpr std::uint32_t shader = 0xB000, shader_end = 0xC000;
constexpr std::uint32_t context = 0x28000, context_end = 0x29000;
constexpr std::uint32_t uconfig = 0x30000, uconfig_end = 0x31200;
}  // namespace register_space

class RegisterFile {
 public:
  // REQUIRES of both: a RegisterMap knows the register.
  std::uint32_t get(std::uint32_t offset) const noexcept;
  void set(std::uint32_t offset, std::uint32_t value) noexcept;
  void clear_context() noexcept;

 private:
  template <std::uint32_t first, std::uint32_t end>
  using Space = std::array<std::uint32_t, (end - first) / 4>;

  Space<register_space::shader, register_space::shader_end> shader_{};
  Space<register_space::context, register_space::context_end> context_{};
  Space<register_space::uconfig, register_space::uconfig_end> uconfig_{};
};

// Where the registers of the graphics stages lie, which drivers set at the start of every stream of the graphics ring:
// kept as state, because compute work does not read them.
//
// Thread-safety and ownership: constants.

struct RegisterRange {
  std::uint32_t first = 0;  // byte offsets, both included
  std::uint32_t last = 0;
};

std::span<const RegisterRange> graphics_shader_ranges(Generation generation) noexcept;
std::span<const RegisterRange> context_ranges(Generation generation) noexcept;

// Machine: what the packets of one job act on; one packet as its function receives it; checked register accesses.

// Packet: one type 3 packet of an indirect buffer, its length checked, as the packets' functions are handed it.
//
// Thread-safety and ownership: a view; its dwords live for the call.

// Bits [high:low] of a dword.
constexpr std::uint32_t field(std::uint32_t dword, unsigned high, unsigned low) noexcept {
  return (dword >> low) & (0xFFFF'FFFFU >> (31 - (high - low)));
}

constexpr std::uint64_t joined(std::uint32_t low, std::uint32_t high) noexcept {
  return std::uint64_t{high} << 32 | low;
}

// Whether a dword can be the high half of an address: 16 bits, or what the sign's extension makes of them, as drivers
// write it.
constexpr bool is_high_half(std::uint32_t dword) noexcept { return dword <= 0xFFFF || (dword >> 15) == 0x1FFFF; }

std::string hexadecimal(std::uint64_t value);  // "0x1f"

struct Packet {
  std::string_view name;
  std::uint64_t address = 0;  // of its header
  std::uint32_t header = 0;
  std::span<const std::uint32_t> body;

  bool compute_type() const noexcept { return (header & 2) != 0; }

  // Faults at this packet: about its header, or about the dword of its body with that index.
  Fault refuse(FaultKind kind, const std::string& why) const;
  Fault refuse(FaultKind kind, std::size_t index, const std::string& why) const;
};

using Outcome = std::optional<Fault>;  // nothing: it went well

// What queries count, from job to job.
struct PipelineStatistics {
  bool counting = false;          // between PIPELINESTAT_START and PIPELINESTAT_STOP
  std::uint64_t invocations = 0;  // of compute shaders
};

// Machine: what the packets of one job act on: registers, memory, the compute engine, and where the stream goes on.
//
// Thread-safety: one thread; `stop` is set from others. Ownership: borrows everything but the registers.
struct Machine {
  const CommandProcessorSettings& settings;
  ComputeEngine& engine;
  const RegisterMap& map;
  DeviceMemory& memory;
  const std::atomic<const char*>& stop;  // null: go on
  PacketCounters& counters;
  PipelineStatistics& statistics;
  Ring ring;
  RegisterFile registers;
  std::optional<std::uint64_t> indirect_base{};  // SET_BASE
  bool predicate = true;                         // SET_PREDICATION: whether packets with the header's bit 0 act

  bool running = false;   // nothing has waited for the last dispatch
  bool released = false;  // and a RELEASE_MEM after it writes when it has ended

  // Set by a packet for the loop that reads them, which clears them.
  std::optional<IndirectBuffer> enter{};
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

// Register accesses of packets, checked against the register map.
//
// Thread-safety: the machine's one thread. Ownership: borrows.

// `index`: of the dword of the body that a fault is about.
Outcome write_register(Machine& machine, const Packet& packet, std::size_t index, std::uint32_t offset,
                       std::uint32_t value);
Outcome read_register(Machine& machine, const Packet& packet, std::size_t index, std::uint32_t offset,
                      std::uint32_t& value);

}  // namespace kiln::simulator
