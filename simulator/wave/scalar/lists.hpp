// The tables of scalar instructions. Thread-safety and ownership: constants.
#pragma once

#include "simulator/wave/op.hpp"

namespace kiln::simulator::scalar_unit {

SemanticsList sop2() noexcept;
SemanticsList sop1() noexcept;
SemanticsList compare() noexcept;      // SOPC, and the compares of SOPK
SemanticsList sopk() noexcept;
SemanticsList control() noexcept;  // SOPP, and what changes the program counter
SemanticsList smem() noexcept;

}  // namespace kiln::simulator::scalar_unit
