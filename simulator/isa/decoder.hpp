// decode: the words at one address as an Instruction, or why they are none.
//
// The decoder guesses nothing: a number without an opcode, a reserved operand code, a set bit that the format does not
// define, a misaligned group of scalar registers, registers beyond the file, and known operations that are not
// simulated (flag::refused) are faults of kind unknown_opcode which name what was met. A word span that ends within the
// instruction is an overrun.
// Thread-safety: any thread. Ownership: borrows the words for the call.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "simulator/fault.hpp"
#include "simulator/isa/instruction.hpp"

namespace kiln::simulator {

struct CodeTarget {
  Generation generation = Generation::invalid;
  WaveSize wave = WaveSize::invalid;  // VOPD exists for wave32 only; masks are as wide as the wave
};

inline constexpr unsigned longest_instruction = 5;  // dwords to offer, where there are as many

// `address` is that of words[0], for the fault. On a fault `out` is unspecified.
std::optional<Fault> decode(const CodeTarget& target, std::span<const std::uint32_t> words, std::uint64_t address,
                            Instruction& out);

}  // namespace kiln::simulator
