// VOP2, VOP1, VOPC in their e32 form, with a literal, DPP or SDWA dword after the first.
#include "simulator/isa/decode/frame.hpp"
#include "simulator/isa/decode/lanes.hpp"

namespace kiln::simulator::isa {
namespace {

bool is_half(DataType type) { return bits_of(type) == 16 && !is_packed(type); }

// gfx11's e32 forms name the halves of v0..v127: bit 7 of a 16-bit operand's number is the half.
Operand with_half(Frame& frame, Operand operand, unsigned op_sel_bit) {
  if (frame.gfx11() && operand.is_vgpr() && is_half(operand.type) && operand.index() >= 128) {
    operand.code = static_cast<std::uint16_t>(operand.code - 128);
    frame.out.op_sel = static_cast<std::uint8_t>(frame.out.op_sel | 1u << op_sel_bit);
  }
  return operand;
}

Operand first_source(Frame& frame, const OpcodeInfo& line, unsigned code, SdwaFields& sdwa) {
  switch (lane_control(frame, code)) {
    case LaneControl::dpp16:
    case LaneControl::dpp8:
      if (frame.out.opcode == Opcode::v_pk_fmac_f16 && !frame.gfx11()) frame.refuse("takes no DPP");
      for (const DataType type : {line.dst, line.src[0], line.src[1]}) {
        if (type != DataType::mask && dwords_of(type, frame.wave()) > 1) frame.refuse("takes no DPP");
      }
      return with_half(frame, take_dpp(frame, code, line.src[0], SourceModifiers::in_lane_word), 0);
    case LaneControl::sdwa:
      sdwa = take_sdwa(frame, line);
      return sdwa.src0;
    case LaneControl::none:
      break;
  }
  return with_half(frame, frame.source(code, line.src[0]), 0);
}

Operand second_source(Frame& frame, const OpcodeInfo& line, unsigned number, const SdwaFields& sdwa) {
  if (sdwa.scalar_src1) {
    if (number == operand::literal) frame.refuse("SDWA takes no literal");
    return frame.source(number, line.src[1]);
  }
  return with_half(frame, frame.vector(number, line.src[1]), 1);
}

}  // namespace

// 0 op[30:25] vdst[24:17] vsrc1[16:9] src0[8:0]
void decode_vop2(Frame& frame) {
  const std::uint32_t word = frame.word(0);
  const OpcodeInfo& line = frame.find(Encoding::vop2, field(word, 30, 25), Format::vop2);
  Instruction& out = frame.out;
  SdwaFields sdwa;
  out.src[0] = first_source(frame, line, field(word, 8, 0), sdwa);
  const unsigned number = field(word, 16, 9);
  if (out.has(flag::literal_mul)) {
    out.src[1] = frame.source(operand::literal, line.src[1]);
    out.src[2] = with_half(frame, frame.vector(number, line.src[2]), 2);
  } else {
    out.src[1] = second_source(frame, line, number, sdwa);
    if (out.has(flag::literal_add)) out.src[2] = frame.source(operand::literal, line.src[2]);
  }
  out.dst = with_half(frame, frame.vector(field(word, 24, 17), line.dst), 3);
  if (out.has(flag::mask_in)) out.src[2] = frame.mask_register(operand::vcc_lo);
  if (out.has(flag::carry_out)) out.sdst = frame.mask_register(operand::vcc_lo);
}

// 0111111 vdst[24:17] op[16:9] src0[8:0]
void decode_vop1(Frame& frame) {
  const std::uint32_t word = frame.word(0);
  const OpcodeInfo& line = frame.find(Encoding::vop1, field(word, 16, 9), Format::vop1);
  Instruction& out = frame.out;
  if (out.has(flag::no_operands)) {
    frame.require_zero(field(word, 24, 17) | field(word, 8, 0), "an operand");
    return;
  }
  SdwaFields sdwa;
  out.src[0] = first_source(frame, line, field(word, 8, 0), sdwa);
  const unsigned dst = field(word, 24, 17);
  if (out.has(flag::scalar_dst)) {
    out.dst = frame.scalar(dst, line.dst);
    if (!out.src[0].is_vgpr())
      frame.refuse("reads a lane of a VGPR, and operand " + std::to_string(field(word, 8, 0)) + " is none");
  } else {
    out.dst = with_half(frame, frame.vector(dst, line.dst), 3);
  }
  if (needs_vgpr(out.opcode) && !out.src[0].is_vgpr()) frame.refuse("its source is no VGPR");
}

// 0111110 op[24:17] vsrc1[16:9] src0[8:0]
void decode_vopc(Frame& frame) {
  const std::uint32_t word = frame.word(0);
  const OpcodeInfo& line = frame.find(Encoding::vopc, field(word, 24, 17), Format::vopc);
  Instruction& out = frame.out;
  SdwaFields sdwa;
  out.src[0] = first_source(frame, line, field(word, 8, 0), sdwa);
  out.src[1] = second_source(frame, line, field(word, 16, 9), sdwa);
  const unsigned usual = out.has(flag::exec_out) ? operand::exec_lo : operand::vcc_lo;
  out.dst = sdwa.has_destination ? frame.scalar(sdwa.destination, DataType::mask) : frame.mask_register(usual);
}

}  // namespace kiln::simulator::isa
