// A command processor on a table of its own: one buffer for packets, one for data, and short ways to write packets
// down.
//
// Thread-safety: as what it holds. Ownership: owns everything.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "recording_engine.hpp"
#include "simulator/command_processor/command_processor.hpp"
#include "simulator/memory/address_space.hpp"
#include "simulator/memory/job_memory.hpp"

namespace kiln::simulator {

using Dwords = std::vector<std::uint32_t>;

inline Dwords operator+(Dwords left, const Dwords& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

constexpr std::uint32_t header(std::uint32_t opcode, std::size_t body, std::uint32_t low = 2) {
  return 3U << 30 | static_cast<std::uint32_t>(body - 1) << 16 | opcode << 8 | low;
}

inline Dwords packet(std::uint32_t opcode, const Dwords& body) { return Dwords{header(opcode, body.size())} + body; }

inline Dwords set_sh(std::uint32_t offset, const Dwords& values) {
  return packet(0x76, Dwords{(offset - 0xB000) / 4} + values);
}

struct Bench {
  static constexpr std::uint64_t pages = 16;
  static constexpr std::uint64_t code = 0x10'0000;         // readable only, as a command buffer may be
  static constexpr std::uint64_t data = 0x8000'0020'0000;  // of the upper half, as 48 bits
  static constexpr std::uint64_t absent = 0x70'0000;

  explicit Bench(Generation which = Generation::gfx11, Ring on = Ring::compute) : generation(which), ring(on) {
    map(1, code, {true, false, false});
    map(2, data, {true, true, true});
    settings.generation = generation;
    settings.wait_limit_ns = 2'000'000;
  }

  std::optional<Fault> run(const Dwords& dwords) {
    put(0, dwords);
    const IndirectBuffer whole{code, dwords.size() * 4};
    return run_buffers({whole});
  }

  std::optional<Fault> run_buffers(const std::vector<IndirectBuffer>& buffers) {
    if (processor == nullptr) processor = std::make_unique<CommandProcessor>(settings, engine);
    const std::array<std::uint64_t, 2> listed{1, 2};
    JobMemory memory(table.snapshot(), listed, l2);
    return processor->run({ring, buffers, &memory});
  }

  // Host side, of the packets' and of the data's buffer.
  void put(std::size_t byte, const Dwords& dwords) {
    std::memcpy(host[0]->data() + byte, dwords.data(), dwords.size() * 4);
  }
  std::uint32_t get(std::size_t byte) const {
    std::uint32_t word;
    std::memcpy(&word, host[1]->data() + byte, 4);
    return word;
  }
  void set(std::size_t byte, std::uint32_t word) {  // whole, because a job may be polling it
    __atomic_store_n(static_cast<std::uint32_t*>(static_cast<void*>(host[1]->data() + byte)), word, __ATOMIC_RELEASE);
  }

  static std::uint32_t low(std::uint64_t address) { return static_cast<std::uint32_t>(address); }
  static std::uint32_t high(std::uint64_t address) { return static_cast<std::uint32_t>(address >> 32); }

  // Registers of a dispatch that nothing is wrong with.
  static Dwords sound_state(Generation generation = Generation::gfx11) {
    Dwords all = set_sh(0xB81C, {64, 1, 1}) + set_sh(0xB830, {0x8000'2000, 0}) + set_sh(0xB848, {0x60AF0080, 0x9E}) +
                 set_sh(0xB858, {~0U, ~0U}) + set_sh(0xB864, {~0U, ~0U});
    if (generation == Generation::gfx11) all = all + set_sh(0xB8AC, {~0U, ~0U, ~0U, ~0U, 64});
    return all;
  }

  Generation generation;
  Ring ring;
  CommandProcessorSettings settings;  // before the first run
  ComputeEngine engine{ComputeLimits{}};
  PageTable table;
  L2Cache l2;
  std::unique_ptr<CommandProcessor> processor;

 private:
  struct alignas(4096) Block {
    std::array<std::byte, pages * 4096> bytes{};
    std::byte* data() { return bytes.data(); }
  };

  void map(std::uint64_t id, std::uint64_t start, Rights rights) {
    auto& block = host[id - 1];
    block = std::make_unique<Block>();
    auto memory = std::make_shared<BufferMemory>();
    memory->id = id;
    memory->host = block->data();
    memory->bytes = pages * 4096;
    static_cast<void>(table.map({sign_extended(start), memory->bytes, 0, rights, Caching::cached, memory}));
  }

  std::array<std::unique_ptr<Block>, 2> host;
};

inline FaultKind kind(const std::optional<Fault>& fault) { return fault ? fault->kind : FaultKind::invalid; }

}  // namespace kiln::simulator
