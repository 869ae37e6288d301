#include "simulator/isa/text/parts.hpp"

namespace kiln::simulator::isa {
namespace {

unsigned source_count(const Instruction& instruction) {
  unsigned count = 0;
  for (unsigned index = 0; index < 3; ++index) count += instruction.src[index].present() ? 1 : 0;
  return count;
}

std::string bit_list(const char* name, unsigned bits, unsigned count) {
  std::string text = std::string(" ") + name + ":[";
  for (unsigned index = 0; index < count; ++index) {
    if (index != 0) text += ',';
    text += (bits >> index & 1u) != 0 ? '1' : '0';
  }
  return text + "]";
}

std::string output_modifiers(const Instruction& instruction) {
  std::string text = instruction.clamp ? " clamp" : "";
  switch (instruction.omod) {
    case 1:
      return text + " mul:2";
    case 2:
      return text + " mul:4";
    case 3:
      return text + " div:2";
    default:
      return text;
  }
}

const char* select_word(Select select) {
  constexpr const char* words[] = {"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"};
  return words[static_cast<unsigned>(select)];
}

std::string sdwa_text(const Instruction& instruction) {
  constexpr const char* unused[] = {"UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"};
  const Sdwa& sdwa = instruction.sdwa;
  std::string text;
  if (instruction.format != Format::vopc) {
    text +=
        std::string(" dst_sel:") + select_word(sdwa.dst) + " dst_unused:" + unused[static_cast<unsigned>(sdwa.unused)];
  }
  text += std::string(" src0_sel:") + select_word(sdwa.src[0]);
  if (instruction.format != Format::vop1) text += std::string(" src1_sel:") + select_word(sdwa.src[1]);
  return text;
}

std::string dpp_control(unsigned control) {
  const std::string low = std::to_string(control & 15u);
  if (control < 0x100) {
    std::string text = " quad_perm:[";
    for (unsigned lane = 0; lane < 4; ++lane) {
      if (lane != 0) text += ',';
      text += std::to_string(control >> 2 * lane & 3u);
    }
    return text + "]";
  }
  switch (control >> 4) {
    case 0x10:
      return " row_shl:" + low;
    case 0x11:
      return " row_shr:" + low;
    case 0x12:
      return " row_ror:" + low;
    case 0x14:
      return control == 0x140 ? " row_mirror" : " row_half_mirror";
    case 0x15:
      return " row_share:" + low;
    default:
      return " row_xmask:" + low;
  }
}

}  // namespace

std::string vector_modifiers(const Instruction& instruction) {
  std::string text;
  if (instruction.op_sel != 0 && (instruction.format == Format::vop3)) {
    const bool permutes =
        instruction.opcode == Opcode::v_permlane16_b32 || instruction.opcode == Opcode::v_permlanex16_b32;
    const unsigned count = source_count(instruction);
    const unsigned bits = (instruction.op_sel & 7u) | (instruction.op_sel >> 3) << count;
    const bool dst_half = instruction.opcode_info().encoding != Encoding::vopc;
    text += bit_list("op_sel", bits, permutes ? 2 : count + (dst_half ? 1 : 0));
  }
  return text + output_modifiers(instruction);
}

std::string packed_modifiers(const Instruction& instruction) {
  const unsigned count = source_count(instruction);
  const unsigned all = (1u << count) - 1u;
  const bool mixes = instruction.opcode == Opcode::v_fma_mix_f32 || instruction.opcode == Opcode::v_fma_mixlo_f16 ||
                     instruction.opcode == Opcode::v_fma_mixhi_f16;
  std::string text;
  if ((instruction.op_sel & all) != 0) text += bit_list("op_sel", instruction.op_sel, count);
  if ((instruction.op_sel_hi & all) != (mixes ? 0 : all)) text += bit_list("op_sel_hi", instruction.op_sel_hi, count);
  if (!mixes) {
    if ((instruction.neg & all) != 0) text += bit_list("neg_lo", instruction.neg, count);
    if ((instruction.neg_hi & all) != 0) text += bit_list("neg_hi", instruction.neg_hi, count);
  }
  return text + (instruction.clamp ? " clamp" : "");
}

std::string lane_modifiers(const Instruction& instruction) {
  const Dpp& dpp = instruction.dpp;
  std::string text;
  switch (instruction.lanes) {
    case LaneControl::none:
      return {};
    case LaneControl::sdwa:
      return sdwa_text(instruction);
    case LaneControl::dpp8:
      text = " dpp8:[";
      for (unsigned lane = 0; lane < 8; ++lane) text += (lane != 0 ? "," : "") + std::to_string(dpp.selectors[lane]);
      text += "]";
      break;
    case LaneControl::dpp16:
      text = dpp_control(dpp.control) + " row_mask:" + hex(dpp.row_mask) + " bank_mask:" + hex(dpp.bank_mask);
      if (dpp.bound_control) text += " bound_ctrl:1";
      break;
  }
  return text + (dpp.fetch_inactive ? " fi:1" : "");
}

std::string cache_modifiers(const Instruction& instruction) {
  std::string text;
  if (instruction.glc) text += " glc";
  if (instruction.slc) text += " slc";
  if (instruction.dlc) text += " dlc";
  return text;
}

}  // namespace kiln::simulator::isa
