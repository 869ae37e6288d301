// docs/isa-subset.md says what the tables say. Set KILN_WRITE_DOCS=1 in the environment and this test writes it.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "simulator/isa/decoder.hpp"

namespace {

using namespace kiln::simulator;

constexpr const char* introduction = R"(# ISA subset of the simulator

This page lists the gfx11 and gfx10.3 instructions that the simulated AMD device executes. It is generated from
`simulator/isa/opcodes.def`; a test compares it. To write it again: `KILN_WRITE_DOCS=1 kiln_test_sim_isa`.

The decoder is tested against LLVM 19's disassembler: every opcode number of every encoding
(`tests/simulator/isa/sweep/sweep.py`), random operands and modifiers, and every word of the kernels in
`tests/simulator/isa/kernels`, for both generations, both wave sizes and four optimization levels.

## Formats

| format | dwords | notes |
|---|---|---|
| SOP1 SOP2 SOPC SOPK SOPP | 1, with literal 2 | most numbers differ between the generations |
| SMEM | 2 | glc and dlc are in other bits on gfx10.3 |
| VOP1 VOP2 VOPC (e32) | 1, with literal, DPP or SDWA 2 | SDWA on gfx10.3 only; LLVM has DPP of VOPC on gfx11 only, Mesa emits it on both; 16-bit operands of gfx11 name halves of v0..v127 |
| VOP3 VOP3SD VOP3P (e64) | 2, with literal or DPP 3 | DPP on gfx11 only; e64 numbers: VOP2 + 256, VOP1 + 384, VOPC + 0 |
| VOPD | 2, with literal 3 | gfx11, wave32; both halves may not read one register bank through one port |
| DS | 2 | GDS is refused |
| FLAT GLOBAL SCRATCH | 2 | other layout on gfx10.3; loads to LDS are refused |
| MUBUF MTBUF | 2 | other layout on gfx10.3; loads take tfe; loads to LDS are refused |
| MIMG | 2 to 5 | lists of address VGPRs: 1 dword on gfx11, up to 3 on gfx10.3; loads and samples take tfe; r128 (but for rays) and lwe are refused |

* Operand codes are those of gfx11: 124 null, 125 m0. gfx10.3 exchanges them.
* Groups of SGPRs are aligned to their size, at most to four, and may end in VCC, which counts as s106 and s107.
* Unused fields must be zero, except for VGPRs of FLAT and MUBUF, where compilers leave other values.
* DPP16 controls: quad_perm, row_shl, row_shr, row_ror, row_mirror, row_half_mirror, row_share, row_xmask.
* Everything else is a fault with address, word and reason.

## Images

* Images are linear or tiled with one sample, in every swizzle mode except gfx10.3's variable ones, with mipmap levels.
  Tests compare addresses with AMD's address library. It has no formula for 256 KiB D_X of volumes and for the order of
  DCC keys within a level: the simulator uses its own.
* DCC is read if it says clear or plain, HTILE of depth and stencil if it says plain. Images are stored plain.
* Formats: those of buffers, sRGB, 5_6_5, 1_5_5_5, 5_5_5_1, 4_4_4_4, 4_4, 5_9_9_9 and BC1 to BC7.
* Linear filters have weights of eight bits. An anisotropic filter takes the mean of equal samples along the longer
  derivative; AMD does not document its own places and weights.
* Sparse (partially resident) addresses without memory read as zero and lose what is written; tfe says so.
* Rays (`image_bvh_intersect_ray`) meet boxes of floats and halves, and triangles.
* Several samples are refused. The message has the image's type, format, mode and size.

## Precision

Sines, cosines, exponentials, logarithms, reciprocals and roots are computed by the host; hardware may differ in the
last places. `v_wmma` and dot products of floats are summed in order, with one rounding each.

## How to read the lists

Each entry is gfx11's mnemonic, its number on gfx11 and on gfx10.3 (– if the generation lacks it), and gfx10.3's
mnemonic if it differs. Encodings are those of LLVM, except `v_dot2acc_f32_bf16`, which LLVM 19 lacks.

| mark | how the results are tested |
|---|---|
| **t** | a test of `tests/simulator/wave` compares them with plain C++ |
| **k** | it occurs in `tests/simulator/compute/kernels`, whose results are compared with the host's |
| none | not tested by itself; vector instructions are compared between the AVX-512, the AVX2 and the portable build |
)";

struct Section {
  Encoding encoding;
  const char* title;
};

constexpr Section sections[] = {
    {Encoding::sop2, "SOP2"},       {Encoding::sop1, "SOP1"},   {Encoding::sopc, "SOPC"},
    {Encoding::sopk, "SOPK"},       {Encoding::sopp, "SOPP"},   {Encoding::smem, "SMEM"},
    {Encoding::vop2, "VOP2"},       {Encoding::vop1, "VOP1"},   {Encoding::vopc, "VOPC"},
    {Encoding::vop3, "VOP3"},       {Encoding::vop3p, "VOP3P"}, {Encoding::dual, "VOPD only"},
    {Encoding::ds, "DS"},           {Encoding::flat, "FLAT"},   {Encoding::global, "GLOBAL"},
    {Encoding::scratch, "SCRATCH"}, {Encoding::mubuf, "MUBUF"}, {Encoding::mtbuf, "MTBUF"},
    {Encoding::mimg, "MIMG"},       {Encoding::exp, "EXP"},     {Encoding::vinterp, "VINTERP"},
    {Encoding::ldsdir, "LDSDIR"}};

std::string file_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in.good());
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Of the tests of instructions and their headers: what stands between quotes.
std::set<std::string> quoted_words() {
  std::set<std::string> words;
  for (const auto& entry : std::filesystem::directory_iterator(KILN_SOURCE_DIR "/tests/simulator/wave")) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with("_test.cpp") && !name.ends_with(".hpp")) continue;
    const std::string text = file_text(entry.path());
    for (std::size_t start = text.find('"'), end; start != std::string::npos; start = text.find('"', end + 1)) {
      end = text.find('"', start + 1);
      if (end == std::string::npos) break;
      words.insert(text.substr(start + 1, end - start - 1));
    }
  }
  return words;
}

// Whether the tests name it, or put its name together from what is compared, how, and the type.
bool is_named(std::string_view mnemonic, const std::set<std::string>& words) {
  if (words.contains(std::string(mnemonic))) return true;
  const std::size_t last = mnemonic.rfind('_');  // s_and_saveexec and _b64
  if (last != std::string_view::npos && mnemonic.find("exec_") != std::string_view::npos) {
    return words.contains(std::string(mnemonic.substr(0, last))) && words.contains(std::string(mnemonic.substr(last)));
  }
  for (const std::string prefix : {"v_cmp_", "v_cmpx_"}) {
    if (!mnemonic.starts_with(prefix) || !words.contains(prefix)) continue;
    const std::string_view rest = mnemonic.substr(prefix.size());
    const std::size_t type = rest.rfind('_');
    return words.contains(std::string(rest.substr(0, type))) && words.contains(std::string(rest.substr(type)));
  }
  return false;
}

// What the stored code of the kernels consists of; data between the instructions is passed over.
std::set<Opcode> kernel_opcodes() {
  std::set<Opcode> seen;
  const std::string text = file_text(KILN_SOURCE_DIR "/tests/simulator/compute/kernels/goldens.inc");
  const std::string array = "constexpr std::uint32_t gfx";
  for (std::size_t start = text.find(array); start != std::string::npos; start = text.find(array, start + 1)) {
    const Generation generation =
        text.compare(start + array.size(), 4, "1100") == 0 ? Generation::gfx11 : Generation::gfx10_3;
    std::vector<std::uint32_t> code;
    const std::size_t end = text.find('}', start);
    for (std::size_t at = text.find("0x", start); at < end; at = text.find("0x", at + 1)) {
      code.push_back(static_cast<std::uint32_t>(std::stoul(text.substr(at + 2, 8), nullptr, 16)));
    }
    for (std::size_t at = 0; at < code.size();) {
      Instruction instruction;
      if (decode({generation, WaveSize::wave32}, std::span(code).subspan(at), 4 * at, instruction)) {
        ++at;
        continue;
      }
      seen.insert(instruction.opcode);
      if (instruction.format == Format::vopd) seen.insert(instruction.y.opcode);
      at += instruction.dwords;
    }
  }
  return seen;
}

std::string number(int value) { return value < 0 ? "–" : std::to_string(value); }

std::string entry(const OpcodeInfo& line) {
  std::string text = "`" + std::string(line.name) + "` " + number(line.gfx11) + "/" + number(line.gfx10_3);
  if (line.gfx10_3 >= 0 && line.gfx10_3_name != line.name) text += " (`" + std::string(line.gfx10_3_name) + "`)";
  static const std::set<std::string> words = quoted_words();
  static const std::set<Opcode> kernels = kernel_opcodes();
  if ((line.flags & flag::refused) != 0) return text;
  std::string judged = is_named(line.name, words) ? "t" : "";
  if (kernels.contains(line.opcode)) judged += "k";
  return judged.empty() ? text : text + " **" + judged + "**";
}

// Entries in lines of at most 120 characters.
std::string paragraph(const std::vector<std::string>& entries) {
  std::string text;
  std::string current;
  for (std::size_t index = 0; index < entries.size(); ++index) {
    const std::string part = entries[index] + (index + 1 < entries.size() ? "," : "");
    if (!current.empty() && current.size() + 1 + part.size() > 120) {
      text += current + "\n";
      current.clear();
    }
    current += (current.empty() ? "" : " ") + part;
  }
  return text + current + "\n";
}

std::string section_text(const Section& section) {
  std::vector<std::string> decoded;
  int gfx11 = 0;
  int gfx10_3 = 0;
  for (unsigned index = 1; index < static_cast<unsigned>(Opcode::count); ++index) {
    const OpcodeInfo& line = info(static_cast<Opcode>(index));
    if (line.encoding != section.encoding || (line.flags & flag::refused) != 0) continue;
    decoded.push_back(entry(line));
    gfx11 += line.gfx11 >= 0 ? 1 : 0;
    gfx10_3 += line.gfx10_3 >= 0 ? 1 : 0;
  }
  if (decoded.empty()) return {};
  return "\n## " + std::string(section.title) + " (" + std::to_string(gfx11) + " on gfx11, " + std::to_string(gfx10_3) +
         " on gfx10.3)\n\n" + paragraph(decoded);
}

// A row of the table of refused instructions; empty where the encoding has none.
std::string refused_row(const Section& section) {
  std::string names;
  for (unsigned index = 1; index < static_cast<unsigned>(Opcode::count); ++index) {
    const OpcodeInfo& line = info(static_cast<Opcode>(index));
    if (line.encoding != section.encoding || (line.flags & flag::refused) == 0) continue;
    names += (names.empty() ? "" : ", ") + entry(line);
  }
  return names.empty() ? names : "| " + std::string(section.title) + " | " + names + " |\n";
}

std::string document() {
  std::string text = introduction;
  for (const Section& section : sections) text += section_text(section);
  text += "\n## VOPD\n\n";
  for (unsigned code = 0; code < 32; ++code) {
    const Opcode opcode = find_dual_opcode(Half::second, code);
    if (opcode == Opcode::invalid) continue;
    const bool both = find_dual_opcode(Half::first, code) != Opcode::invalid;
    text += "- " + std::to_string(code) + ": `" + std::string(info(opcode).name) + "`" +
            (both ? "" : ", second half only") + "\n";
  }
  text +=
      "\n## Refused instructions\n\nThese are decoded, and refused by name.\n\n| encoding | instructions "
      "|\n|---|---|\n";
  for (const Section& section : sections) text += refused_row(section);
  return text;
}

}  // namespace

TEST_CASE("simulator::isa: docs/isa-subset.md agrees with the tables") {
  const char* path = KILN_SOURCE_DIR "/docs/isa-subset.md";
  const std::string expected = document();
  if (std::getenv("KILN_WRITE_DOCS") != nullptr) std::ofstream(path, std::ios::binary) << expected;
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in.good());
  const std::string found((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  CHECK((found == expected));
}
