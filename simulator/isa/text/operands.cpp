#include <cstdio>

#include "simulator/isa/text/parts.hpp"

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

std::string address_text(const ImageAccess& image, Generation generation) {
  const unsigned count = image.addresses;
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

}  // namespace kiln::simulator::isa
