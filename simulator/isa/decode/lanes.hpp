// The dword that may follow a vector instruction whose first source says so: the source taken across lanes (DPP16,
// DPP8) or in part (SDWA, gfx10.3 only).
//
// Thread-safety and ownership: as Frame.
#pragma once

#include "simulator/isa/decode/frame.hpp"

namespace kiln::simulator::isa {

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
