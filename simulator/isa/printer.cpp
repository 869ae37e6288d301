#include "simulator/isa/printer.hpp"

#include "simulator/isa/memory_formats.hpp"

namespace kiln::simulator {
namespace {

using namespace isa;

// Operands in a row, with commas.
class Line {
 public:
  Line(std::string mnemonic, const Instruction& instruction, const CodeTarget& target)
      : instruction_(instruction), target_(target), text_(std::move(mnemonic)) {}

  void add(const std::string& part) { text_ += (count_++ == 0 ? " " : ", ") + part; }
  void add(const Operand& operand) {  // of this instruction: its address says which
    if (operand.present()) add(operand_text(operand, instruction_, target_));
  }
  void add_source(unsigned index) {
    if (instruction_.src[index].present()) add(source_text(index, instruction_, target_));
  }
  void append(const std::string& part) { text_ += part; }
  std::string take() { return std::move(text_); }

 private:
  const Instruction& instruction_;
  const CodeTarget& target_;
  std::string text_;
  unsigned count_ = 0;
};

unsigned low16(std::int32_t value) { return static_cast<unsigned>(value) & 0xFFFFu; }

void add_sopp(Line& line, const Instruction& i, Generation generation) {
  const unsigned constant = low16(i.simm16);
  if (i.has(flag::no_operands)) return;
  switch (i.opcode) {
    case Opcode::s_endpgm:
      if (constant != 0) line.add(std::to_string(constant));
      return;
    case Opcode::s_waitcnt:
      return line.add(wait_text(constant, generation));
    case Opcode::s_delay_alu:
      return line.add(delay_text(constant));
    case Opcode::s_sendmsg:
      return line.add(message_text(constant, generation));
    case Opcode::s_clause:
    case Opcode::s_set_inst_prefetch_distance:
    case Opcode::s_waitcnt_depctr:
    case Opcode::s_wait_event:
    case Opcode::s_round_mode:
    case Opcode::s_ttracedata_imm:
      return line.add(hex(constant));
    default:
      return line.add(i.has(flag::branch) ? std::to_string(constant) : constant_text(constant));
  }
}

void add_sopk(Line& line, const Instruction& i, Generation generation) {
  const unsigned constant = low16(i.simm16);
  switch (i.opcode) {
    case Opcode::s_getreg_b32:
      line.add(i.dst);
      return line.add(hardware_register_text(constant, generation));
    case Opcode::s_setreg_b32:
    case Opcode::s_setreg_imm32_b32:
      line.add(hardware_register_text(constant, generation));
      return line.add(i.src[0]);
    case Opcode::s_call_b64:
    case Opcode::s_subvector_loop_begin:
    case Opcode::s_subvector_loop_end:
      line.add(i.dst);
      return line.add(std::to_string(constant));
    default:
      line.add(i.dst.present() ? i.dst : i.src[0]);
      return line.add(hex(constant));
  }
}

void add_smem(Line& line, const Instruction& i) {
  line.add(i.dst);
  line.add(i.src[0]);
  if (i.src[0].present()) {
    const bool has_register = i.src[1].code != operand::null;
    if (i.offset != 0 && !has_register) {
      line.add(signed_hex(i.offset));
    } else {
      line.add(i.src[1]);
      if (i.offset != 0) line.append(" offset:" + signed_hex(i.offset));
    }
  }
  line.append(cache_modifiers(i));
}

std::string vector_mnemonic(const Instruction& i, Generation generation) {
  std::string text(mnemonic(i.opcode, generation));
  if (i.opcode_info().encoding == Encoding::vop3 && text.rfind("v_interp", 0) == 0) return text;
  const bool two_forms = !i.has(flag::no_e64 | flag::no_operands);
  switch (i.format) {
    case Format::vop1:
    case Format::vop2:
    case Format::vopc:
      if (i.lanes == LaneControl::sdwa) return text + "_sdwa";
      if (i.lanes != LaneControl::none) return i.format == Format::vopc ? text : text + "_dpp";
      return two_forms ? text + "_e32" : text;
    default:
      break;
  }
  if (i.lanes != LaneControl::none) return text + "_e64_dpp";
  const Encoding home = i.opcode_info().encoding;
  const bool promoted = home == Encoding::vop1 || home == Encoding::vop2 || home == Encoding::vopc;
  return promoted && two_forms ? text + "_e64" : text;
}

void add_vector(Line& line, const Instruction& i) {
  if (!i.has(flag::exec_out) || i.opcode_info().encoding != Encoding::vopc) line.add(i.dst);
  line.add(i.sdst);
  for (unsigned index = 0; index < 3; ++index) line.add_source(index);
  line.append(i.format == Format::vop3p ? packed_modifiers(i) : vector_modifiers(i));
  line.append(lane_modifiers(i));
}

// VOPD's halves; a select's mask is not written.
std::string half_text(Opcode opcode, const Operand& dst, const std::array<Operand, 3>& src, const Instruction& i,
                      const CodeTarget& target) {
  const OpcodeInfo& info_line = info(opcode);
  Line line("v_dual_" + std::string(info_line.name.substr(2)), i, target);
  line.add(dst);
  const bool own = (info_line.flags & (flag::literal_add | flag::literal_mul)) != 0;
  for (std::size_t index = 0; index < src.size(); ++index) {
    if (own && index > 0 && src[index].is_literal()) {
      line.add(hex(i.literal));
    } else if (src[index].type != DataType::mask) {
      line.add(src[index]);
    }
  }
  return line.take();
}

std::string vopd_text(const Instruction& i, const CodeTarget& target) {
  return half_text(i.opcode, i.dst, {i.src[0], i.src[1], i.src[2]}, i, target) +
         " :: " + half_text(i.y.opcode, i.y.dst, i.y.src, i, target);
}

void add_ds(Line& line, const Instruction& i) {
  line.add(i.dst);
  for (unsigned index = 0; index < 3; ++index) line.add(i.src[index]);
  if (i.has(flag::two_addresses)) {
    if (i.offset != 0) line.append(" offset0:" + std::to_string(i.offset));
    if (i.offset1 != 0) line.append(" offset1:" + std::to_string(i.offset1));
  } else if (i.offset != 0) {
    line.append(" offset:" + std::to_string(i.offset));
  }
}

void add_flat(Line& line, const Instruction& i) {
  line.add(i.dst);
  const bool by_thread = i.opcode == Opcode::global_load_addtid_b32 || i.opcode == Opcode::global_store_addtid_b32;
  if (i.src[0].present())
    line.add(i.src[0]);
  else if (!by_thread)
    line.add(std::string("off"));
  line.add(i.src[1]);
  if (i.src[2].present())
    line.add(i.src[2]);
  else if (i.format != Format::flat)
    line.add(std::string("off"));
  if (i.offset != 0) line.append(" offset:" + std::to_string(i.offset));
  line.append(cache_modifiers(i));
}

void add_buffer(Line& line, const Instruction& i, Generation generation) {
  if (i.has(flag::no_operands)) return;
  line.add(i.src[3].present() ? i.src[3] : i.dst);
  if (i.src[0].present())
    line.add(i.src[0]);
  else
    line.add(std::string("off"));
  line.add(i.src[1]);
  line.add(i.src[2]);
  // 1 is what an assembler takes where no format is written.
  if (i.format == Format::mtbuf && i.buffer_format != 1) line.append(buffer_format_text(i, generation));
  if (i.idxen) line.append(" idxen");
  if (i.offen) line.append(" offen");
  if (i.offset != 0) line.append(" offset:" + std::to_string(i.offset));
  line.append(cache_modifiers(i));
  if (i.tfe) line.append(" tfe");
}

void add_image(Line& line, const Instruction& i, Generation generation) {
  constexpr const char* dims[] = {"1D", "2D", "3D", "CUBE", "1D_ARRAY", "2D_ARRAY", "2D_MSAA", "2D_MSAA_ARRAY"};
  const ImageAccess& image = i.image;
  line.add(i.src[3].present() ? i.src[3] : i.dst);
  line.add(address_text(i, generation));
  line.add(i.src[1]);
  line.add(i.src[2]);
  if (image_shape(i.opcode).ray_pointer != 0) {
    if (image.a16) line.append(" a16");
    return;
  }
  if (image.mask != 0) line.append(" dmask:" + hex(image.mask));
  line.append(std::string(" dim:SQ_RSRC_IMG_") + dims[static_cast<unsigned>(image.dim)]);
  if (image.unnormalised) line.append(" unorm");
  line.append(cache_modifiers(i));
  if (image.a16) line.append(" a16");
  if (i.tfe) line.append(" tfe");
  if (image.d16) line.append(" d16");
}

}  // namespace

std::string to_text(const Instruction& i, const CodeTarget& target) {
  const Generation generation = target.generation;
  if (i.format == Format::vopd) return vopd_text(i, target);
  Line line(std::string(mnemonic(i.opcode, generation)), i, target);
  switch (i.format) {
    case Format::invalid:
    case Format::vopd:
      break;
    case Format::sopp:
      add_sopp(line, i, generation);
      break;
    case Format::sopk:
      add_sopk(line, i, generation);
      break;
    case Format::smem:
      add_smem(line, i);
      break;
    case Format::sop1:
      line.add(i.dst);
      if (i.opcode == Opcode::s_sendmsg_rtn_b32 || i.opcode == Opcode::s_sendmsg_rtn_b64) {
        line.add(message_text(low16(i.simm16), generation));
      } else {
        line.add(i.src[0]);
      }
      break;
    case Format::sop2:
    case Format::sopc:
      line.add(i.dst);
      line.add(i.src[0]);
      line.add(i.src[1]);
      break;
    case Format::vop1:
    case Format::vop2:
    case Format::vopc:
    case Format::vop3:
    case Format::vop3sd:
    case Format::vop3p: {
      Line vector(vector_mnemonic(i, generation), i, target);
      add_vector(vector, i);
      return vector.take();
    }
    case Format::ds:
      add_ds(line, i);
      break;
    case Format::flat:
    case Format::global:
    case Format::scratch:
      add_flat(line, i);
      break;
    case Format::mubuf:
    case Format::mtbuf:
      add_buffer(line, i, generation);
      break;
    case Format::mimg:
      add_image(line, i, generation);
      break;
  }
  return line.take();
}

}  // namespace kiln::simulator
