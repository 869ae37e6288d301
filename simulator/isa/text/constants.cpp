#include "simulator/isa/buffer_format.hpp"
#include "simulator/isa/text/parts.hpp"

namespace kiln::simulator::isa {

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
