// Effects: the registers that an instruction reads and writes, and how it reaches memory. The hazard checks use them.
//
// Thread-safety and ownership: values and a pure function.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "simulator/isa/decoder.hpp"

namespace kiln::simulator {

struct Registers {  // neighbours
  std::uint16_t first = 0;
  std::uint8_t count = 0;
  bool vector = false;  // VGPRs; else scalar registers, as operands number them

  bool operator==(const Registers&) const = default;
};

enum class Reach : std::uint8_t {
  none = 0,
  scalar,  // scalar memory and messages that return a value
  local,   // the DS unit, with or without LDS
  vector,  // global, scratch, buffers and images
  flat     // memory, LDS or scratch, by the address of each lane
};

// What an atomic does, as far as its operand alone tells whether it leaves the old value as it was.
enum class Change : std::uint8_t { other = 0, add, bit_or, bit_and, swap, min_signed, max_signed, min, max };

// A bit for each register: the VGPRs, then from `scalars` on the scalar ones, as operands number them.
struct RegisterSet {
  static constexpr unsigned scalars = 256, count = scalars + 128;

  void insert(unsigned bit) noexcept { words[bit / 64] |= std::uint64_t{1} << bit % 64; }
  void erase(unsigned bit) noexcept { words[bit / 64] &= ~(std::uint64_t{1} << bit % 64); }
  bool holds(unsigned bit) const noexcept { return (words[bit / 64] >> bit % 64 & 1U) != 0; }
  void set(unsigned bit, bool value) noexcept { value ? insert(bit) : erase(bit); }
  bool meets(const RegisterSet& other) const noexcept {
    std::uint64_t both = 0;
    for (unsigned i = 0; i < count / 64; ++i) both |= words[i] & other.words[i];
    return both != 0;
  }

  std::array<std::uint64_t, count / 64> words{};
};

struct Effects {
  std::vector<Registers> reads;
  std::vector<Registers> writes;
  Reach reach = Reach::none;
  bool load = false;   // what it writes arrives later
  bool store = false;  // writes memory; an atomic too
  bool atomic = false;
  bool exchange = false;  // an atomic that compares and swaps
  Change change = Change::other;
  bool vector = false;    // runs under EXEC
  bool scc = false;       // may read or write SCC
  bool masks = false;     // the wave's size shows in how it writes EXEC or reads or writes VCC
  bool stride64 = false;  // DS: the two offsets count in 64 elements
  bool relative = false;  // M0 moves its registers: these here are those that it names, and `touched` is all
  bool plain =
      false;  // neither waits nor reaches memory: where no register of `touched` is late or undefined, it is right
  RegisterSet touched;  // all that it reads and writes
};

Effects effects_of(const Instruction& instruction, WaveSize wave);

// How far M0 moves the registers of an instruction that finds them by it.
struct RelativeOffsets {
  std::uint32_t source = 0, destination = 0;
};
RelativeOffsets relative_offsets(Opcode opcode, std::uint32_t m0);

}  // namespace kiln::simulator
