// What the readers of all instruction formats share: the frame of one decoded instruction, and lane control words.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "simulator/isa/decoder.hpp"

namespace kiln::simulator::isa {

// Frame: what the readers of the formats share while one instruction is decoded: its words, the target, the Instruction
// under construction, and the fault that was met first. After a fault readers go on and what they set means nothing, so
// that they need not ask after each field.
//
// Thread-safety and ownership: lives within one call of decode(), on its thread.

// Bits [high:low] of a word.
constexpr std::uint32_t field(std::uint32_t word, unsigned high, unsigned low) noexcept {
  return (word >> low) & ((high - low == 31 ? 0u : 1u << (high - low + 1)) - 1u);
}
constexpr bool bit(std::uint32_t word, unsigned index) noexcept { return ((word >> index) & 1u) != 0; }
constexpr std::int32_t sign_extend(std::uint32_t value, unsigned bits) noexcept {
  const std::uint32_t sign = 1u << (bits - 1);
  return static_cast<std::int32_t>((value ^ sign) - sign);
}

class Frame {
 public:
  Frame(const CodeTarget& target, std::span<const std::uint32_t> words, std::uint64_t address, Instruction& instruction)
      : out(instruction), target_(target), words_(words), address_(address) {}

  Instruction& out;

  bool gfx11() const noexcept { return target_.generation == Generation::gfx11; }
  Generation generation() const noexcept { return target_.generation; }
  WaveSize wave() const noexcept { return target_.wave; }
  bool failed() const noexcept { return fault_.has_value(); }
  std::optional<Fault> take_fault() noexcept { return std::move(fault_); }

  std::uint32_t word(unsigned index);  // 0 and an overrun where there is none
  // The next word after those that the format and earlier calls took.
  std::uint32_t take_word() { return word(out.dwords++); }

  void refuse(std::string reason, unsigned word = 0);
  void require_zero(std::uint32_t bits, const char* what, unsigned word = 0);

  // Sets out.opcode and its format, or refuses: no such number, or known and not simulated.
  const OpcodeInfo& find(Encoding encoding, unsigned number, Format format);

  // Operands. Codes are as the word holds them; gfx10.3's are renumbered. The literal is taken when it is first met.
  Operand source(unsigned code, DataType type);    // 8 or 9 bits: a VGPR from 256 on
  Operand scalar(unsigned code, DataType type);    // 7 bits: a scalar register, or null
  Operand vector(unsigned number, DataType type);  // 8 bits
  Operand mask_register(unsigned code) { return Operand{static_cast<std::uint16_t>(code), DataType::mask}; }

 private:
  unsigned renumber(unsigned code) const noexcept;
  void check_group(unsigned code, DataType type);
  std::optional<std::uint32_t> word_at(unsigned index) const;

  const CodeTarget target_;
  const std::span<const std::uint32_t> words_;
  const std::uint64_t address_;
  bool has_literal_ = false;
  std::optional<Fault> fault_;
};

// Exchanges, and moves whose source is counted from M0.
bool needs_vgpr(Opcode opcode) noexcept;

void decode_sop2(Frame& frame);
void decode_sop1(Frame& frame);
void decode_sopc(Frame& frame);
void decode_sopk(Frame& frame);
void decode_sopp(Frame& frame);
void decode_smem(Frame& frame);
void decode_vop2(Frame& frame);
void decode_vop1(Frame& frame);
void decode_vopc(Frame& frame);
void decode_vop3(Frame& frame);
void decode_vop3p(Frame& frame);
void decode_vopd(Frame& frame);
void decode_ds(Frame& frame);
void decode_flat(Frame& frame);
void decode_mubuf(Frame& frame);
void decode_mtbuf(Frame& frame);
void decode_mimg(Frame& frame);
void decode_graphics(Frame& frame);  // exports, interpolation: refused by name

// The dword that may follow a vector instruction whose first source says so: the source taken across lanes (DPP16,
// DPP8) or in part (SDWA, gfx10.3 only).
//
// Thread-safety and ownership: as Frame.

// What the 9-bit code of a first source stands for.
LaneControl lane_control(const Frame& frame, unsigned code) noexcept;

enum class SourceModifiers : std::uint8_t { invalid = 0, in_lane_word, in_instruction };  // e32 and e64

// REQUIRES: dpp16 or dpp8. Takes the dword and answers the first source.
Operand take_dpp(Frame& frame, unsigned code, DataType type, SourceModifiers modifiers);

struct SdwaFields {
  Operand src0;
  bool scalar_src1 = false;      // the second source's field is a scalar operand
  bool has_destination = false;  // VOPC: the mask goes to `destination`, not to VCC
  std::uint8_t destination = 0;
};
SdwaFields take_sdwa(Frame& frame, const OpcodeInfo& line);

}  // namespace kiln::simulator::isa
