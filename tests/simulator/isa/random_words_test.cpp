// Random operands and modifiers of every opcode number of every encoding, put to the decoder and to LLVM's
// disassembler: what both take has one text and one length; what LLVM takes and the decoder does not is refused for a
// reason that stands below, and so is what only the decoder takes.
#include <algorithm>
#include <catch2/catch.hpp>
#include <iostream>
#include <map>
#include <set>
#include <string>

#include "simulator/isa/llvm.hpp"
#include "simulator/isa/memory_formats.hpp"
#include "simulator/isa/printer.hpp"
#include "simulator/isa/word_source.hpp"

namespace {

using namespace kiln;
using namespace kiln::simulator;

// The decoder is stricter: LLVM passes over bits that mean nothing, and rounds groups of registers down.
constexpr const char* stricter[] = {"and not simulated",
                                    "is not simulated",
                                    "are not simulated",
                                    "and has no meaning here",
                                    "operand 239 is reserved",  // POPS, of pixel shaders
                                    "has no halves",
                                    "scalar registers starts at operand",
                                    "is no scalar register",
                                    "is no register",
                                    "is no VGPR",
                                    "reads a lane of a VGPR",
                                    "its destination is EXEC alone",
                                    "of an absent source is set",
                                    "takes no negation",
                                    "takes no absolute value",
                                    "takes no output modifier",
                                    "takes no clamp",
                                    "of an address that has",
                                    "on exceed 256",
                                    "the components of an atomic"};

bool is_stricter(const std::string& reason) {
  return std::any_of(std::begin(stricter), std::end(stricter),
                     [&reason](const char* phrase) { return reason.find(phrase) != std::string::npos; });
}

bool dot_of_bfloats(const Instruction& i) {
  return i.opcode == Opcode::v_dot2acc_f32_bf16 || i.y.opcode == Opcode::v_dot2acc_f32_bf16;
}

bool ends_in_vcc(const Instruction& i) {
  for (const Operand* operand : {&i.dst, &i.src[0], &i.src[1]}) {
    const unsigned dwords = dwords_of(operand->type, WaveSize::wave64);
    if (operand->code < operand::vcc_lo && dwords >= 4 && operand->code + dwords > operand::vcc_lo) return true;
  }
  return false;
}

// What LLVM does not know, or words in which it finds a fault that the machine does not.
bool is_looser(const Instruction& i) {
  const bool e32 = i.format == Format::vop1 || i.format == Format::vop2 || i.format == Format::vopc;
  if (e32 && i.op_sel != 0) return true;  // halves of registers in gfx11's e32 forms
  if (i.opcode == Opcode::v_mov_b16 && i.format == Format::vop3) return true;
  if (i.opcode == Opcode::s_delay_alu) return true;  // delays without a name
  if (dot_of_bfloats(i)) return true;
  if (i.format == Format::vop3p && i.lanes != LaneControl::none) return true;  // DPP beside a scalar source
  if (i.has(flag::mask_in) && i.src[2].code == operand::exec_lo) return true;
  if (i.has(flag::scalar_rest)) return true;  // a condition code as a lane's number
  const bool dpp = i.lanes == LaneControl::dpp16 || i.lanes == LaneControl::dpp8;
  if (i.format == Format::vopc && dpp) return true;  // of gfx10.3, which Mesa's compiler emits
  if (ends_in_vcc(i)) return true;                   // s[104:107] and its like, which LLVM has no name for
  // More dwords of registers than the address fills.
  if (i.format == Format::mimg && i.image.addresses + 2U < 4U * (i.dwords - 2U)) return true;
  if (i.format == Format::mtbuf && i.tfe) return true;
  if (i.format == Format::mimg && image_shape(i.opcode).ray_pointer != 0 && (i.glc || i.slc || i.dlc)) return true;
  return i.format == Format::mubuf && i.has(flag::atomic) && i.dlc;
}

// LLVM leaves op_sel out of e64 forms, and spells two constants out.
bool same_text(std::string ours, const std::string& theirs, const Instruction& i) {
  if (ours == theirs) return true;
  if (i.opcode == Opcode::s_waitcnt_depctr || i.opcode == Opcode::ds_swizzle_b32 || i.opcode == Opcode::s_sendmsg ||
      i.opcode == Opcode::s_sendmsg_rtn_b32 || i.opcode == Opcode::s_sendmsg_rtn_b64) {
    return theirs.rfind(ours.substr(0, ours.find_first_of(" ")), 0) == 0;
  }
  // LLVM has no list of one, and no data of three registers for a gather.
  const bool three = i.image.d16 && i.tfe && image_shape(i.opcode).gather;
  if (i.format == Format::mimg && (three || (i.image.scattered && i.image.addresses == 1))) {
    return theirs.rfind(ours.substr(0, ours.find_first_of(" ")), 0) == 0;
  }
  switch (i.opcode) {  // an inline constant as a half, or as an integer
    case Opcode::v_ldexp_f16:
    case Opcode::v_cmp_class_f16:
    case Opcode::v_cmpx_class_f16:
      return true;
    default:
      break;
  }
  const std::size_t start = ours.find(" op_sel:[");
  if (i.format != Format::vop3 || start == std::string::npos) return false;
  ours.erase(start, ours.find(']', start) + 1 - start);
  return ours == theirs;
}

void compare(const CodeTarget& target, unsigned draws, unsigned seed, const std::filesystem::path& folder) {
  test::WordSource source(target.generation, seed);
  std::vector<std::vector<std::uint32_t>> words;
  for (unsigned encoding = 1; encoding < static_cast<unsigned>(Encoding::count); ++encoding) {
    const auto one = static_cast<Encoding>(encoding);
    for (unsigned number = 0; number < source.numbers(one); ++number) {
      const bool known = one == Encoding::dual || find_opcode(target.generation, one, number) != Opcode::invalid;
      const unsigned count = known && one != Encoding::dual ? draws : std::min(draws, 4u);
      for (unsigned draw = 0; draw < count; ++draw) words.push_back(source.make(one, number));
    }
  }
  const auto theirs = test::disassemble_each(words, target, folder);
  std::size_t agreed = 0;
  std::set<Opcode> seen;
  for (std::size_t index = 0; index < words.size(); ++index) {
    Instruction instruction;
    std::vector<std::uint32_t> code = words[index];
    code.resize(longest_instruction, 0);
    const auto fault = decode(target, code, 0, instruction);
    const auto& line = theirs[index];
    char first[32];
    std::snprintf(first, sizeof first, "%08x %08x", code[0], code[1]);
    INFO("words: " << first);
    INFO("LLVM: " << (line ? line->text : std::string("none")));
    INFO("fault: " << (fault ? fault->reason : std::string("none")));
    if (fault) {
      if (line && !is_stricter(fault->reason)) CHECK(fault->reason == line->text);
      continue;
    }
    const std::string text = to_text(instruction, target);
    if (!line) {
      if (!is_looser(instruction)) CHECK(text == "not an instruction");
      continue;
    }
    if (!same_text(text, line->text, instruction)) CHECK(text == line->text);
    // LLVM's length is that of its own encoding, which may write a literal as an inline constant.
    if (std::equal(line->words.begin(), line->words.end(), code.begin()) && line->words.size() != instruction.dwords) {
      CHECK(line->words.size() == instruction.dwords);
    }
    ++agreed;
    seen.insert(instruction.opcode);
    if (instruction.format == Format::vopd) seen.insert(instruction.y.opcode);
  }
  std::cout << test::processor_of(target.generation) << " wave" << static_cast<int>(target.wave) << ": " << agreed
            << " of " << words.size() << " words agree, " << seen.size() << " opcodes\n";
  if (draws < 20) return;
  for (unsigned index = 1; index < static_cast<unsigned>(Opcode::count); ++index) {
    const OpcodeInfo& line = info(static_cast<Opcode>(index));
    const int number = target.generation == Generation::gfx11 ? line.gfx11 : line.gfx10_3;
    if (number < 0 || (line.flags & flag::refused) != 0 || line.encoding == Encoding::dual) continue;
    INFO(line.name);
    CHECK(seen.count(line.opcode) == 1);
  }
}

}  // namespace

TEST_CASE("simulator::isa::decoder agrees with LLVM on random words of every opcode") {
  const std::string missing = test::missing_llvm_tool();
  if (!missing.empty()) {
    WARN("skipped: " << missing << " is not installed, and it is the oracle");
    return;
  }
  test::ScratchFolder scratch;
  for (const Generation generation : {Generation::gfx11, Generation::gfx10_3}) {
    compare({generation, WaveSize::wave32}, 48, 1, scratch.path());
    compare({generation, WaveSize::wave64}, 6, 2, scratch.path());
  }
}
