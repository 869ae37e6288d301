// to_text: an instruction as an assembler would read it: "v_add_f32_e64 v0, -v1, |v2| clamp". The words and their order
// are those of LLVM's disassembler, so that the two can be compared; only what LLVM spells out of s_waitcnt_depctr,
// ds_swizzle's offset and some message numbers stays a number here.
//
// Thread-safety: any thread. Ownership: the text is the caller's.
#pragma once

#include <string>

#include "simulator/isa/decoder.hpp"

namespace kiln::simulator {

// REQUIRES: what decode() gave for this target.
std::string to_text(const Instruction& instruction, const CodeTarget& target);

}  // namespace kiln::simulator
