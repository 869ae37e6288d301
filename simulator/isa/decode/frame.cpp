#include "simulator/isa/decode/frame.hpp"

namespace kiln::simulator::isa {

std::uint32_t Frame::word(unsigned index) {
  if (index < words_.size()) return words_[index];
  if (!fault_) {
    fault_ = Fault{FaultKind::overrun, address_, word_at(0),
                   "the code ends after dword " + std::to_string(words_.size()) + " of an instruction that needs " +
                       std::to_string(index + 1)};
  }
  return 0;
}

std::optional<std::uint32_t> Frame::word_at(unsigned index) const {
  if (index < words_.size()) return words_[index];
  return {};
}

void Frame::refuse(std::string reason, unsigned word) {
  if (fault_) return;
  std::string text = std::move(reason);
  if (out.opcode != Opcode::invalid) text = std::string(mnemonic(out.opcode, generation())) + ": " + text;
  fault_ = Fault{FaultKind::unknown_opcode, address_ + 4ull * word, word_at(word), std::move(text)};
}

void Frame::require_zero(std::uint32_t bits, const char* what, unsigned word) {
  if (bits != 0) refuse(std::string(what) + " is set and has no meaning here", word);
}

namespace {

const char* name_of(Encoding encoding) {
  switch (encoding) {
    case Encoding::sop2:
      return "SOP2";
    case Encoding::sop1:
      return "SOP1";
    case Encoding::sopc:
      return "SOPC";
    case Encoding::sopk:
      return "SOPK";
    case Encoding::sopp:
      return "SOPP";
    case Encoding::smem:
      return "SMEM";
    case Encoding::vop2:
      return "VOP2";
    case Encoding::vop1:
      return "VOP1";
    case Encoding::vopc:
      return "VOPC";
    case Encoding::vop3:
      return "VOP3";
    case Encoding::vop3p:
      return "VOP3P";
    case Encoding::ds:
      return "DS";
    case Encoding::flat:
      return "FLAT";
    case Encoding::global:
      return "GLOBAL";
    case Encoding::scratch:
      return "SCRATCH";
    case Encoding::mubuf:
      return "MUBUF";
    case Encoding::mtbuf:
      return "MTBUF";
    case Encoding::mimg:
      return "MIMG";
    case Encoding::exp:
      return "EXP";
    case Encoding::vinterp:
      return "VINTERP";
    case Encoding::ldsdir:
      return "LDSDIR";
    default:
      return "no encoding";
  }
}

}  // namespace

const OpcodeInfo& Frame::find(Encoding encoding, unsigned number, Format format) {
  const Opcode opcode = find_opcode(generation(), encoding, number);
  out.format = format;
  if (opcode == Opcode::invalid) {
    refuse(std::string(name_of(encoding)) + " has no opcode " + std::to_string(number));
    return info(Opcode::invalid);
  }
  out.opcode = opcode;
  if (out.has(flag::refused)) {
    refuse(std::string("known (") + name_of(encoding) + " opcode " + std::to_string(number) + ") and not simulated");
  }
  return info(opcode);
}

unsigned Frame::renumber(unsigned code) const noexcept {
  if (gfx11()) return code;
  if (code == 124) return operand::m0;
  if (code == 125) return operand::null;
  return code;
}

// Groups of scalar registers start at a multiple of their size, of four at most, and stay within one kind of register.
// VCC counts as s106 and s107: Mesa's compiler loads groups that end in it, which LLVM has no name for.
void Frame::check_group(unsigned code, DataType type) {
  const unsigned dwords = dwords_of(type, wave());
  if (code >= operand::vgpr) {
    if (code - operand::vgpr + dwords > 256) {
      refuse(std::to_string(dwords) + " VGPRs from v" + std::to_string(code - operand::vgpr) + " on exceed 256");
    }
    return;
  }
  if (dwords < 2 || code >= operand::integers || code == operand::null) return;
  const unsigned alignment = dwords == 2 ? 2 : 4;
  unsigned end = 128;  // EXEC
  unsigned first = operand::exec_lo;
  if (code < operand::sgpr_end + 2)
    end = operand::sgpr_end + 2, first = 0;
  else if (code < operand::null)
    end = operand::null, first = operand::ttmp;
  if (code < first || (code - first) % alignment != 0 || code + dwords > end) {
    refuse("no group of " + std::to_string(dwords) + " scalar registers starts at operand " + std::to_string(code));
  }
}

Operand Frame::source(unsigned code, DataType type) {
  if (type == DataType::none) return {};
  code = renumber(code);
  const Operand result{static_cast<std::uint16_t>(code), type};
  if (code == operand::literal) {
    if (!has_literal_) out.literal = take_word();
    has_literal_ = true;
    return result;
  }
  const bool known = code < operand::integers_end || code >= operand::vgpr ||
                     (code >= operand::shared_base && code <= operand::private_limit) ||
                     (code >= operand::floats && code < operand::floats_end) ||
                     (code >= operand::vccz && code <= operand::scc);
  if (!known) refuse("operand " + std::to_string(code) + " is reserved");
  check_group(code, type);
  return result;
}

Operand Frame::scalar(unsigned code, DataType type) {
  if (type == DataType::none) return {};
  code = renumber(code);
  if (code >= operand::integers) refuse("operand " + std::to_string(code) + " is no scalar register");
  check_group(code, type);
  return Operand{static_cast<std::uint16_t>(code), type};
}

Operand Frame::vector(unsigned number, DataType type) {
  if (type == DataType::none) return {};
  const Operand result{static_cast<std::uint16_t>(operand::vgpr + number), type};
  check_group(result.code, type);
  return result;
}

bool needs_vgpr(Opcode opcode) noexcept {
  switch (opcode) {
    case Opcode::v_swap_b32:
    case Opcode::v_swaprel_b32:
    case Opcode::v_movrels_b32:
    case Opcode::v_movrelsd_b32:
    case Opcode::v_movrelsd_2_b32:
    case Opcode::v_permlane64_b32:
      return true;
    default:
      return false;
  }
}

}  // namespace kiln::simulator::isa
