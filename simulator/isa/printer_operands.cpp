#include "simulator/isa/printer.hpp"

#include <cstdio>

#include "simulator/isa/memory_formats.hpp"

namespace kiln::simulator::isa {
namespace {

std::string group(char kind, unsigned first, unsigned dwords) {
  if (dwords == 1) return kind + std::to_string(first);
  return std::string(1, kind) + "[" + std::to_string(first) + ":" + std::to_string(first + dwords - 1) + "]";
}

std::string scalar_text(unsigned code, unsigned dwords) {
  if (code < operand::sgpr_end) return group('s', code, dwords);
  switch (code) {
    case operand::vcc_lo:
      return dwords == 2 ? "vcc" : "vcc_lo";
    case operand::vcc_hi:
      return "vcc_hi";
    case operand::null:
      return "null";
    case operand::m0:
      return "m0";
    case operand::exec_lo:
      return dwords == 2 ? "exec" : "exec_lo";
    case operand::exec_hi:
      return "exec_hi";
    default:
      break;
  }
  std::string text = group('s', code - operand::ttmp, dwords);
  return "ttmp" + text.substr(1);
}

constexpr const char* float_words[] = {"0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0"};
constexpr unsigned half_words[] = {0x3800, 0xB800, 0x3C00, 0xBC00, 0x4000, 0xC000, 0x4400, 0xC400, 0x3118};
constexpr std::uint32_t single_words[] = {0x3F000000, 0xBF000000, 0x3F800000, 0xBF800000, 0x40000000,
                                          0xC0000000, 0x40800000, 0xC0800000, 0x3E22F983};

std::string inline_float(unsigned index, DataType type) {
  const bool half_integer = bits_of(type) == 16 && !is_float(type);
  if (half_integer && !is_packed(type)) return hex(half_words[index]);
  if (index < 8) return float_words[index];
  return bits_of(type) == 64 || type == DataType::matrix_bf16 ? "0.15915494309189532" : "0.15915494";
}

// A literal that is also an inline constant is written as that.
std::string literal_text(std::uint32_t value, DataType type) {
  const bool narrow = bits_of(type) == 16 && !is_packed(type);
  if (narrow) value &= 0xFFFFu;
  const std::int32_t number = narrow ? static_cast<std::int16_t>(value) : static_cast<std::int32_t>(value);
  if (number >= -16 && number <= 64) return std::to_string(number);
  for (unsigned index = 0; index < 9; ++index) {
    const bool same =
        narrow ? is_float(type) && value == half_words[index] : bits_of(type) == 32 && value == single_words[index];
    if (same) return inline_float(index, type);
  }
  return hex(value);
}

std::string named_source(unsigned code) {
  switch (code) {
    case operand::shared_base:
      return "src_shared_base";
    case operand::shared_limit:
      return "src_shared_limit";
    case operand::private_base:
      return "src_private_base";
    case operand::private_limit:
      return "src_private_limit";
    case operand::vccz:
      return "src_vccz";
    case operand::execz:
      return "src_execz";
    default:
      return "src_scc";
  }
}

bool is_constant(const Operand& operand) {
  return operand.code >= operand::integers && operand.code < operand::vgpr &&
         (operand.code < operand::shared_base || operand.code >= operand::floats) && operand.code != operand::vccz &&
         operand.code != operand::execz && operand.code != operand::scc;
}

// The half of a VGPR, where an e32 form of gfx11 names it. LLVM writes the low one for v_mov_b16 alone.
std::string half_suffix(const Instruction& instruction, const Operand& operand) {
  switch (instruction.format) {
    case Format::vop1:
    case Format::vop2:
    case Format::vopc:
      break;
    default:
      return {};
  }
  unsigned bit = 0;
  if (&operand == &instruction.dst) bit = 3;
  while (bit < 3 && &operand != &instruction.src[bit]) ++bit;
  if ((instruction.op_sel >> bit & 1u) != 0) return ".h";
  return instruction.opcode == Opcode::v_mov_b16 ? ".l" : "";
}

// v_fma_mix*: abs is neg_hi, and LLVM takes each literal for a half.
bool mixes(Opcode opcode) {
  return opcode == Opcode::v_fma_mix_f32 || opcode == Opcode::v_fma_mixlo_f16 || opcode == Opcode::v_fma_mixhi_f16;
}

}  // namespace

std::string hex(std::uint64_t value) {
  char buffer[24];
  std::snprintf(buffer, sizeof buffer, "0x%llx", static_cast<unsigned long long>(value));
  return buffer;
}

std::string signed_hex(std::int64_t value) {
  return value < 0 ? "-" + hex(static_cast<std::uint64_t>(-value)) : hex(static_cast<std::uint64_t>(value));
}

std::string constant_text(unsigned constant) { return literal_text(constant, DataType::i16); }

std::string operand_text(const Operand& operand, const Instruction& instruction, const CodeTarget& target) {
  const unsigned code = operand.code;
  const unsigned dwords = dwords_of(operand.type, target.wave);
  if (operand.is_vgpr()) {
    return group('v', operand.index(), dwords) + half_suffix(instruction, operand);
  }
  if (code < operand::integers) return scalar_text(code, dwords);
  if (code <= operand::integers + 64) return std::to_string(code - operand::integers);
  if (code < operand::integers_end)
    return std::to_string(static_cast<int>(operand::integers + 64) - static_cast<int>(code));
  if (code >= operand::floats && code < operand::floats_end) return inline_float(code - operand::floats, operand.type);
  if (code == operand::literal) {
    const bool own = instruction.has(flag::literal_add | flag::literal_mul) && &operand != &instruction.src[0];
    if (own && instruction.format != Format::vopd) return hex(instruction.literal);
    return literal_text(instruction.literal, mixes(instruction.opcode) ? DataType::f16 : operand.type);
  }
  return named_source(code);
}

std::string source_text(unsigned index, const Instruction& instruction, const CodeTarget& target) {
  const Operand& operand = instruction.src[index];
  std::string text = operand_text(operand, instruction, target);
  if (instruction.lanes == LaneControl::sdwa && index < 2 && instruction.sdwa.sign_extend[index]) {
    text = "sext(" + text + ")";
  }
  const bool mix = mixes(instruction.opcode);
  if (instruction.format == Format::vop3p && !mix) return text;  // packed_modifiers() says it
  const bool absolute = ((mix ? instruction.neg_hi : instruction.abs) >> index & 1u) != 0;
  if (absolute) text = "|" + text + "|";
  if ((instruction.neg >> index & 1u) == 0) return text;
  return is_constant(operand) && !absolute ? "neg(" + text + ")" : "-" + text;
}

std::string address_text(const Instruction& instruction, Generation generation) {
  const ImageAccess& image = instruction.image;
  const unsigned count = image.addresses, pointer = image_shape(instruction.opcode).ray_pointer;
  if (image.scattered && generation == Generation::gfx11 && pointer != 0) {
    std::string text = "[" + group('v', image.address[0], pointer);
    for (unsigned at = pointer; at < count; at += at == pointer ? 1 : 3) {
      text += ", " + group('v', image.address[at], at == pointer ? 1 : 3);
    }
    return text + "]";
  }
  if (!image.scattered) return group('v', image.address[0], count > 12 ? 16 : count);  // as LLVM rounds it
  constexpr unsigned gfx11_most = 5;
  std::string text;
  for (unsigned i = 0; i < count; ++i) {
    const bool last = generation == Generation::gfx11 && i == gfx11_most - 1;
    text += (i == 0 ? "[" : ", ") + group('v', image.address[i], last ? count - i : 1);
    if (last) break;
  }
  return text + "]";
}

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

std::string wait_text(unsigned constant, Generation generation) {
  const bool gfx11 = generation == Generation::gfx11;
  const unsigned vector = gfx11 ? constant >> 10 & 63u : (constant & 15u) | (constant >> 14 & 3u) << 4;
  const unsigned exports = gfx11 ? constant & 7u : constant >> 4 & 7u;
  const unsigned scalar = gfx11 ? constant >> 4 & 63u : constant >> 8 & 63u;
  const bool all = vector == 63 && exports == 7 && scalar == 63;
  std::string text;
  const auto add = [&text, all](const char* name, unsigned value, unsigned none) {
    if (value == none && !all) return;
    if (!text.empty()) text += ' ';
    text += std::string(name) + "(" + std::to_string(value) + ")";
  };
  add("vmcnt", vector, 63);
  add("expcnt", exports, 7);
  add("lgkmcnt", scalar, 63);
  return text;
}

namespace {

std::string delay_word(unsigned id) {
  constexpr const char* words[] = {
      "NO_DEP",        "VALU_DEP_1",    "VALU_DEP_2",        "VALU_DEP_3",   "VALU_DEP_4",   "TRANS32_DEP_1",
      "TRANS32_DEP_2", "TRANS32_DEP_3", "FMA_ACCUM_CYCLE_1", "SALU_CYCLE_1", "SALU_CYCLE_2", "SALU_CYCLE_3"};
  return id < 12 ? words[id] : "/* invalid instid value */";
}

}  // namespace

// instid0[3:0] instskip[6:4] instid1[10:7]
std::string delay_text(unsigned constant) {
  constexpr const char* skips[] = {"SAME", "NEXT", "SKIP_1", "SKIP_2", "SKIP_3", "SKIP_4"};
  const unsigned first = constant & 15u;
  const unsigned skip = constant >> 4 & 7u;
  const unsigned second = constant >> 7 & 15u;
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : " | ") + part; };
  if (first != 0) add("instid0(" + delay_word(first) + ")");
  if (skip != 0) add("instskip(" + std::string(skip < 6 ? skips[skip] : "/* invalid instskip value */") + ")");
  if (second != 0) add("instid1(" + delay_word(second) + ")");
  return text.empty() ? "0" : text;
}

std::string message_text(unsigned constant, Generation generation) {
  if (constant == 1) return "sendmsg(MSG_INTERRUPT)";
  if (constant == 3 && generation == Generation::gfx11) return "sendmsg(MSG_DEALLOC_VGPRS)";
  constexpr const char* returning[] = {"DOORBELL", "DDID", "TMA", "REALTIME", "", "TBA", "TBA_TO_PC"};
  constexpr unsigned first_returning = 128, save_wave = 132;
  if (constant == save_wave) return "sendmsg(MSG_RTN_SAVE_WAVE)";
  if (constant >= first_returning && constant - first_returning < std::size(returning)) {
    return "sendmsg(MSG_RTN_GET_" + std::string(returning[constant - first_returning]) + ")";
  }
  return hex(constant);
}

// id[5:0] offset[10:6] size-1[15:11]
std::string hardware_register_text(unsigned constant, Generation generation) {
  const bool gfx11 = generation == Generation::gfx11;
  const unsigned id = constant & 63u;
  const unsigned offset = constant >> 6 & 31u;
  const unsigned size = (constant >> 11 & 31u) + 1;
  const auto name = [id, gfx11]() -> std::string {
    switch (id) {
      case 1:
        return "HW_REG_MODE";
      case 2:
        return "HW_REG_STATUS";
      case 3:
        return "HW_REG_TRAPSTS";
      case 5:
        return "HW_REG_GPR_ALLOC";
      case 6:
        return "HW_REG_LDS_ALLOC";
      case 7:
        return "HW_REG_IB_STS";
      case 15:
        return "HW_REG_SH_MEM_BASES";
      case 16:
        return gfx11 ? "16" : "HW_REG_TBA_LO";
      case 17:
        return gfx11 ? "17" : "HW_REG_TBA_HI";
      case 18:
        return gfx11 ? "HW_REG_PERF_SNAPSHOT_PC_LO" : "HW_REG_TMA_LO";
      case 19:
        return gfx11 ? "HW_REG_PERF_SNAPSHOT_PC_HI" : "HW_REG_TMA_HI";
      case 20:
        return "HW_REG_FLAT_SCR_LO";
      case 21:
        return "HW_REG_FLAT_SCR_HI";
      case 23:
        return "HW_REG_HW_ID1";
      case 24:
        return "HW_REG_HW_ID2";
      case 25:
        return gfx11 ? "25" : "HW_REG_POPS_PACKER";
      case 27:
        return gfx11 ? "HW_REG_PERF_SNAPSHOT_DATA" : "27";
      case 29:
        return "HW_REG_SHADER_CYCLES";
      default:
        return std::to_string(id);
    }
  }();
  if (offset == 0 && size == 32) return "hwreg(" + name + ")";
  return "hwreg(" + name + ", " + std::to_string(offset) + ", " + std::to_string(size) + ")";
}

std::string buffer_format_text(const Instruction& instruction, Generation generation) {
  const std::string_view name = buffer_format_name(generation, instruction.buffer_format);
  if (name.empty()) return " format:" + std::to_string(instruction.buffer_format);
  return " format:[" + std::string(name) + "]";
}

}  // namespace kiln::simulator::isa
