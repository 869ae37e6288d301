#include "simulator/isa/decode_frame.hpp"

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

namespace {

constexpr unsigned sdwa_code = 249;
constexpr unsigned dpp16_code = 250;
constexpr unsigned dpp8_code = 233;
constexpr unsigned dpp8_inactive_code = 234;  // also from lanes that EXEC switches off

bool is_dpp16_control(unsigned control) {
  if (control < 0x100) return true;                                // quad_perm
  if (control == 0x140 || control == 0x141) return true;           // row_mirror, row_half_mirror
  if (control >= 0x150 && control < 0x170) return true;            // row_share, row_xmask
  return control > 0x100 && control < 0x130 && control % 16 != 0;  // row_shl, row_shr, row_ror
}

bool takes_modifiers(DataType type) { return is_float(type); }

}  // namespace

LaneControl lane_control(const Frame& frame, unsigned code) noexcept {
  if (code == sdwa_code && !frame.gfx11()) return LaneControl::sdwa;
  if (code == dpp16_code) return LaneControl::dpp16;
  if (code == dpp8_code || code == dpp8_inactive_code) return LaneControl::dpp8;
  return LaneControl::none;
}

// DPP16: src0[7:0] control[16:8] fi18 bc19 neg0 20 abs0 21 neg1 22 abs1 23 bank_mask[27:24] row_mask[31:28]
// DPP8:  src0[7:0] eight selectors of 3 bits
Operand take_dpp(Frame& frame, unsigned code, DataType type, SourceModifiers modifiers) {
  Instruction& out = frame.out;
  out.lanes = lane_control(frame, code);
  if (out.has(flag::no_dpp)) frame.refuse("takes no DPP");
  const unsigned index = out.dwords;
  const std::uint32_t word = frame.take_word();
  if (out.lanes == LaneControl::dpp8) {
    for (unsigned lane = 0; lane < 8; ++lane) {
      out.dpp.selectors[lane] = static_cast<std::uint8_t>(field(word, 8 + 3 * lane + 2, 8 + 3 * lane));
    }
    out.dpp.fetch_inactive = code == dpp8_inactive_code;
    return frame.vector(field(word, 7, 0), type);
  }
  out.dpp.control = static_cast<std::uint16_t>(field(word, 16, 8));
  if (!is_dpp16_control(out.dpp.control)) {
    frame.refuse("DPP control " + std::to_string(out.dpp.control) + " is reserved", index);
  }
  frame.require_zero(field(word, 17, 17), "bit 17", index);
  out.dpp.fetch_inactive = bit(word, 18);
  out.dpp.bound_control = bit(word, 19);
  out.dpp.bank_mask = static_cast<std::uint8_t>(field(word, 27, 24));
  out.dpp.row_mask = static_cast<std::uint8_t>(field(word, 31, 28));
  if (modifiers == SourceModifiers::in_instruction) {
    frame.require_zero(field(word, 23, 20), "a source modifier of the e32 form", index);
    return frame.vector(field(word, 7, 0), type);
  }
  const OpcodeInfo& line = info(out.opcode);
  for (unsigned source = 0; source < 2; ++source) {
    const std::uint32_t pair = field(word, 21 + 2 * source, 20 + 2 * source);
    const bool takes = takes_modifiers(line.src[source]) || out.opcode == Opcode::v_cndmask_b32;
    if (!takes) frame.require_zero(pair, "a source modifier", index);
    out.neg = static_cast<std::uint8_t>(out.neg | (pair & 1u) << source);
    out.abs = static_cast<std::uint8_t>(out.abs | (pair >> 1) << source);
  }
  return frame.vector(field(word, 7, 0), type);
}

namespace {

Select take_select(Frame& frame, std::uint32_t value, unsigned index) {
  if (value > static_cast<std::uint32_t>(Select::dword)) frame.refuse("SDWA select 7 is reserved", index);
  return static_cast<Select>(value);
}

// The modifiers of one source: select[2:0] sext3 neg4 abs5, bit 6 reserved, scalar7.
bool take_sdwa_source(Frame& frame, std::uint32_t byte, DataType type, unsigned source, unsigned index) {
  Instruction& out = frame.out;
  if (type == DataType::none) {
    frame.require_zero(byte, "a modifier of an absent source", index);
    return false;
  }
  out.sdwa.src[source] = take_select(frame, byte & 7u, index);
  out.sdwa.sign_extend[source] = bit(byte, 3);
  frame.require_zero(byte & 0x40u, "a reserved bit", index);
  const bool floating = takes_modifiers(type) || out.opcode == Opcode::v_cndmask_b32;
  if (floating) {
    // Mesa has a selection extend whole numbers, which LLVM takes for floats.
    if (out.opcode != Opcode::v_cndmask_b32) frame.require_zero(byte & 0x08u, "sign extension of a float", index);
  } else {
    frame.require_zero(byte & 0x30u, "a source modifier of an integer", index);
  }
  out.neg = static_cast<std::uint8_t>(out.neg | (byte >> 4 & 1u) << source);
  out.abs = static_cast<std::uint8_t>(out.abs | (byte >> 5 & 1u) << source);
  return bit(byte, 7);
}

}  // namespace

// src0[7:0]; VOP1, VOP2: dst_sel[10:8] dst_unused[12:11] clamp13 omod[15:14]; VOPC: sdst[14:8] has_sdst15;
// then a byte of modifiers for each source.
SdwaFields take_sdwa(Frame& frame, const OpcodeInfo& line) {
  Instruction& out = frame.out;
  out.lanes = LaneControl::sdwa;
  if (out.has(flag::no_sdwa) || line.encoding == Encoding::invalid) frame.refuse("takes no SDWA");
  for (const DataType type : {line.dst, line.src[0], line.src[1]}) {
    if (type != DataType::mask && dwords_of(type, frame.wave()) > 1) frame.refuse("takes no SDWA");
  }
  const unsigned index = out.dwords;
  const std::uint32_t word = frame.take_word();
  SdwaFields fields;
  if (line.encoding == Encoding::vopc) {
    fields.has_destination = bit(word, 15);
    fields.destination = static_cast<std::uint8_t>(field(word, 14, 8));
    if (!fields.has_destination || out.has(flag::exec_out)) {
      frame.require_zero(field(word, 15, 8), "a destination", index);
    }
  } else {
    out.sdwa.dst = take_select(frame, field(word, 10, 8), index);
    const std::uint32_t unused = field(word, 12, 11);
    if (unused == 3) frame.refuse("SDWA dst_unused 3 is reserved", index);
    out.sdwa.unused = static_cast<Unused>(unused);
    out.clamp = bit(word, 13);
    out.omod = static_cast<std::uint8_t>(field(word, 15, 14));
    if (!is_float(line.dst)) frame.require_zero(out.omod, "an output modifier", index);
  }
  const bool scalar_src0 = take_sdwa_source(frame, field(word, 23, 16), line.src[0], 0, index);
  fields.scalar_src1 = take_sdwa_source(frame, field(word, 31, 24), line.src[1], 1, index);
  const std::uint32_t code = field(word, 7, 0);
  if (scalar_src0 && code == operand::literal) frame.refuse("SDWA takes no literal", index);
  fields.src0 = scalar_src0 ? frame.source(code, line.src[0]) : frame.vector(code, line.src[0]);
  return fields;
}

}  // namespace kiln::simulator::isa
