// Operands that stand for a number: inline constants, literals and the limits of apertures.
//
// Thread-safety and ownership: a pure function.
#pragma once

#include <cstdint>
#include <optional>

#include "simulator/isa/instruction.hpp"

namespace kiln::simulator {

// The bits that an operand stands for, in its type; nothing where it names a register or what changes as waves run.
// `literal`: the instruction's.
std::optional<std::uint64_t> constant_of(const Operand& operand, std::uint32_t literal);

}  // namespace kiln::simulator
