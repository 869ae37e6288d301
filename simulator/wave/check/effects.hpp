// Effects: the registers that an instruction reads and writes, and how it reaches memory. The hazard checks use them.
//
// Thread-safety and ownership: values and a pure function.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/isa/decoder.hpp"
#include "simulator/isa/instruction.hpp"

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

struct Effects {
  std::vector<Registers> reads;
  std::vector<Registers> writes;
  Reach reach = Reach::none;
  bool load = false;   // what it writes arrives later
  bool store = false;  // writes memory; an atomic too
  bool atomic = false;
  bool vector = false;  // runs under EXEC
};

Effects effects_of(const Instruction& instruction, WaveSize wave);

}  // namespace kiln::simulator
