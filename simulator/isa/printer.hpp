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

// The parts of an instruction's text: operands, modifiers behind them, and the constants that have words for fields.
//
// Thread-safety: any thread. Ownership: values.

namespace kiln::simulator::isa {

std::string hex(std::uint64_t value);        // "0x1f"
std::string signed_hex(std::int64_t value);  // "-0x10"

// 16 bits: decimal from -16 to 64, else hexadecimal.
std::string constant_text(unsigned constant);
// A register or constant, without modifiers: "v[2:3]", "vcc_lo", "-1", "0.5", "0x1234".
std::string operand_text(const Operand& operand, const Instruction& instruction, const CodeTarget& target);
// A source with its abs, neg or sign extension: "-|v1|", "neg(1)", "sext(v3)".
std::string source_text(unsigned index, const Instruction& instruction, const CodeTarget& target);
// The VGPRs of an image's address: "v[1:3]", "[v1, v5, v2]".
std::string address_text(const Instruction& instruction, Generation generation);

// What follows the operands, each with a space in front.
std::string vector_modifiers(const Instruction& instruction);
std::string packed_modifiers(const Instruction& instruction);
std::string lane_modifiers(const Instruction& instruction);
std::string cache_modifiers(const Instruction& instruction);

std::string buffer_format_text(const Instruction& instruction, Generation generation);

// s_waitcnt, s_delay_alu, s_sendmsg and hwreg's constant.
std::string wait_text(unsigned constant, Generation generation);
std::string delay_text(unsigned constant);
std::string message_text(unsigned constant, Generation generation);
std::string hardware_register_text(unsigned constant, Generation generation);

}  // namespace kiln::simulator::isa
