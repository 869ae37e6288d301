// What the decoder refuses, in its own words, with the place of the word that is wrong.
#include <catch2/catch.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulator/isa/decoder.hpp"

namespace {

namespace sim = kiln::simulator;

constexpr sim::CodeTarget young{sim::Generation::gfx11, sim::WaveSize::wave32};
constexpr sim::CodeTarget old{sim::Generation::gfx10_3, sim::WaveSize::wave32};

struct RefusalRow {
  sim::CodeTarget target;
  std::vector<std::uint32_t> words;
  const char* reason;  // null: it is decoded
  unsigned word;       // that is refused
};

void check_refusals(const std::vector<RefusalRow>& rows) {
  for (const RefusalRow& row : rows) {
    sim::Instruction instruction;
    const auto fault = sim::decode(row.target, row.words, 0x1000, instruction);
    INFO(std::hex << row.words[0] << " " << (row.words.size() > 1 ? row.words[1] : 0) << " "
                  << (row.reason == nullptr ? "" : row.reason));
    if (row.reason == nullptr) {
      CHECK_FALSE(fault);
      continue;
    }
    REQUIRE(fault);
    CHECK(fault->reason == row.reason);
    CHECK(fault->kind == sim::FaultKind::unknown_opcode);
    CHECK(fault->address == 0x1000 + 4 * row.word);
    CHECK(fault->dword == row.words[row.word]);
  }
}

}  // namespace

TEST_CASE("simulator::isa::decode: code that ends too early says how many words it has and needs") {
  sim::Instruction instruction;
  const std::vector<std::uint32_t> words = {0xBE8000FF};  // s_mov_b32 s0, with a literal
  const auto one = sim::decode(young, words, 0x40, instruction);
  REQUIRE(one);
  CHECK(one->reason == "the code ends after dword 1 of an instruction that needs 2");
  CHECK(one->dword == 0xBE8000FF);
  const auto none = sim::decode(young, {}, 0x40, instruction);
  REQUIRE(none);
  CHECK(none->reason == "the code ends after dword 0 of an instruction that needs 1");
  CHECK_FALSE(none->dword);
}

TEST_CASE("simulator::isa::decode: groups of registers start at a multiple of their size and stay within their kind") {
  check_refusals({
      {young, {0xBE820102}, nullptr, 0},  // s_mov_b64 s[2:3], s[2:3]
      {young, {0xBE810102}, "s_mov_b64: no group of 2 scalar registers starts at operand 1", 0},
      {young, {0xBE820103}, "s_mov_b64: no group of 2 scalar registers starts at operand 3", 0},
      {young, {0xBE82016A}, nullptr, 0},  // vcc
      {young, {0xBE82016B}, "s_mov_b64: no group of 2 scalar registers starts at operand 107", 0},
      {young, {0xBE82016C}, nullptr, 0},  // ttmp[0:1]
      {young, {0xBE82017A}, nullptr, 0},  // ttmp[14:15]
      {young, {0xBE82017B}, "s_mov_b64: no group of 2 scalar registers starts at operand 123", 0},
      {young, {0xBE82017C}, nullptr, 0},  // null
      {young, {0xBE82017D}, "s_mov_b64: no group of 2 scalar registers starts at operand 125", 0},
      {young, {0xBE82017E}, nullptr, 0},  // exec
      {young, {0xBE82017F}, "s_mov_b64: no group of 2 scalar registers starts at operand 127", 0},
      {young, {0xBE8201D0}, nullptr, 0},  // -16
      {young, {0xBE8201D1}, "s_mov_b64: operand 209 is reserved", 0},
      {young, {0xBE8201EA}, "s_mov_b64: operand 234 is reserved", 0},
      {young, {0xBE8201EB}, nullptr, 0},  // src_shared_base
      {young, {0xBE8201EE}, nullptr, 0},  // src_private_limit
      {young, {0xBE8201EF}, "s_mov_b64: operand 239 is reserved", 0},
      {young, {0xBE8201F0}, nullptr, 0},  // 0.5
      {young, {0xBE8201F8}, nullptr, 0},  // 1 / (2 pi)
      {young, {0xBE8201F9}, "s_mov_b64: operand 249 is reserved", 0},
      {young, {0xBE8201FE}, "s_mov_b64: operand 254 is reserved", 0},
      {young, {0xF4081F80, 0xF8000000}, "s_load_b128: no group of 4 scalar registers starts at operand 126", 0},
      {young, {0xF40C1D00, 0xF8000000}, nullptr, 0},  // ttmp[8:15]
      {young, {0xF40C1E00, 0xF8000000}, "s_load_b256: no group of 8 scalar registers starts at operand 120", 0},
      {young, {0xF40C1A00, 0xF8000000}, "s_load_b256: no group of 8 scalar registers starts at operand 104", 0},
      {young, {0xDC560000, 0xFE7C0000}, nullptr, 0},  // global_load_b64 v[254:255], v[0:1], off
      {young, {0xDC560000, 0xFF7C0000}, "global_load_b64: 2 VGPRs from v255 on exceed 256", 0},
  });
}

TEST_CASE("simulator::isa::decode: which moves between lanes there are") {
  const auto mov = [](std::uint32_t control) {
    return std::vector<std::uint32_t>{0x7E0202FA, 0xFF000002 | control << 8};
  };
  std::vector<RefusalRow> rows;
  for (const std::uint32_t control :
       {0x00U, 0xFFU, 0x101U, 0x10FU, 0x111U, 0x11FU, 0x121U, 0x12FU, 0x140U, 0x141U, 0x150U, 0x15FU, 0x160U, 0x16FU}) {
    rows.push_back({young, mov(control), nullptr, 0});
  }
  for (const auto& [control, reason] : {std::pair(0x100U, "v_mov_b32: DPP control 256 is reserved"),
                                        {0x110U, "v_mov_b32: DPP control 272 is reserved"},
                                        {0x120U, "v_mov_b32: DPP control 288 is reserved"},
                                        {0x130U, "v_mov_b32: DPP control 304 is reserved"},
                                        {0x131U, "v_mov_b32: DPP control 305 is reserved"},
                                        {0x13FU, "v_mov_b32: DPP control 319 is reserved"},
                                        {0x142U, "v_mov_b32: DPP control 322 is reserved"},
                                        {0x14FU, "v_mov_b32: DPP control 335 is reserved"},
                                        {0x170U, "v_mov_b32: DPP control 368 is reserved"},
                                        {0x1FFU, "v_mov_b32: DPP control 511 is reserved"}}) {
    rows.push_back({young, mov(control), reason, 1});
  }
  rows.push_back({young, {0x7E0202FA, 0xFF02E402}, "v_mov_b32: bit 17 is set and has no meaning here", 1});
  rows.push_back({young, {0x7E0202FA, 0xFF10E402}, "v_mov_b32: a source modifier is set and has no meaning here", 1});
  rows.push_back({young, {0x7E0202FA, 0xFF40E402}, "v_mov_b32: a source modifier is set and has no meaning here", 1});
  check_refusals(rows);
}

TEST_CASE("simulator::isa::decode: what parts of registers take") {
  check_refusals({
      {old, {0x7E0202F9, 0x00060602}, nullptr, 0},
      {old, {0x7E0202F9, 0x00060702}, "v_mov_b32: SDWA select 7 is reserved", 1},
      {old, {0x7E0202F9, 0x00070602}, "v_mov_b32: SDWA select 7 is reserved", 1},
      {old, {0x7E0202F9, 0x00061602}, nullptr, 0},
      {old, {0x7E0202F9, 0x00061E02}, "v_mov_b32: SDWA dst_unused 3 is reserved", 1},
      {old, {0x7E0202F9, 0x00460602}, "v_mov_b32: a reserved bit is set and has no meaning here", 1},
      {old, {0x7E0202F9, 0x00064602}, "v_mov_b32: an output modifier is set and has no meaning here", 1},
      {old, {0x7E0202F9, 0x00160602}, "v_mov_b32: a source modifier of an integer is set and has no meaning here", 1},
      {old, {0x7E0202F9, 0x00260602}, "v_mov_b32: a source modifier of an integer is set and has no meaning here", 1},
      {old, {0x7E0202F9, 0x008606FF}, "v_mov_b32: SDWA takes no literal", 1},
      {old, {0x7E0202F9, 0x01060602}, "v_mov_b32: a modifier of an absent source is set and has no meaning here", 1},
      {old, {0x7E0254F9, 0x00060602}, nullptr, 0},  // v_rcp_f32
      {old, {0x7E0254F9, 0x00360602}, nullptr, 0},  // -|v2|
      {old, {0x7E0254F9, 0x0006C602}, nullptr, 0},  // div:2
      {old, {0x7E0254F9, 0x000E0602}, "v_rcp_f32: sign extension of a float is set and has no meaning here", 1},
  });
}

TEST_CASE("simulator::isa::decode: which modifiers, halves and lanes each vector instruction takes") {
  const char *no_negation = "v_cndmask_b32: takes no negation", *no_absolute = "v_cndmask_b32: takes no absolute value";
  check_refusals({
      {young, {0xD5010003, 0x00120501}, nullptr, 0},  // v_cndmask_b32 v3, v1, v2, s4
      {young, {0xD5010303, 0x60120501}, nullptr, 0},  // -|v1|, -|v2|
      {young, {0xD5010003, 0x80120501}, no_negation, 1},
      {young, {0xD5010403, 0x00120501}, no_absolute, 0},
      {young, {0xD5018003, 0x00120501}, "v_cndmask_b32: takes no clamp", 0},
      {young, {0xD5010003, 0x08120501}, "v_cndmask_b32: takes no output modifier", 0},
      {young, {0xD5010803, 0x00120501}, "v_cndmask_b32: operand 0 has no halves", 0},
      {young, {0xD65D0003, 0x00120501}, nullptr, 0},  // v_cndmask_b16
      {young, {0xD65D5803, 0x00120501}, nullptr, 0},
      {young, {0xD65D2003, 0x00120501}, "v_cndmask_b16: operand 2 has no halves", 0},
      {young, {0xD65D0003, 0x20120501}, "v_cndmask_b16: takes no negation", 1},
      {young, {0xD5258003, 0x00020501}, nullptr, 0},  // v_add_nc_u32
      {young, {0xD5250003, 0x00120501}, "v_add_nc_u32: an absent source is set and has no meaning here", 1},
      {young, {0xD5188003, 0x00020501}, "v_lshlrev_b32: takes no clamp", 0},
      {young, {0xD4118014, 0x00020501}, nullptr, 0},  // v_cmp_lt_f32
      {young, {0xD4418014, 0x00020501}, "v_cmp_lt_i32: takes no clamp", 0},
      {young, {0xD47E8014, 0x00020501}, "v_cmp_class_f32: takes no clamp", 0},
      {young, {0xD5888003, 0x00000101}, nullptr, 0},  // v_cvt_i32_f32
      {young, {0xD5880003, 0x08000101}, "v_cvt_i32_f32: takes no output modifier", 0},
      {young, {0xD6660003, 0x040E0501}, nullptr, 0},  // v_dot2_f16_f16
      {young, {0xD6668003, 0x040E0501}, "v_dot2_f16_f16: takes no clamp", 0},
      {young, {0xD7270004, 0x000204FA, 0xFF00E406}, "v_add_f64: takes no DPP", 0},
      {young, {0xD5250003, 0x000204FA, 0xFF00E401}, nullptr, 0},
      {old, {0xD5250003, 0x000204FA, 0xFF00E401}, "v_add_nc_u32: operand 250 is reserved", 0},
      {young, {0x7E080405}, "v_readfirstlane_b32: reads a lane of a VGPR, and operand 5 is none", 0},
      {young, {0xD65B0005, 0x000E0501}, "v_permlane16_b32: source 1 is scalar, not a VGPR", 1},
      {young, {0xCC0A4003, 0x18020501}, nullptr, 0},  // v_pk_add_u16
      {young, {0xCC0A4003, 0x38020501}, "v_pk_add_u16: takes no negation", 0},
      {young, {0xCC0A6003, 0x18020501}, "v_pk_add_u16: a modifier of an absent source is set", 0},
      {young, {0xCC0A4403, 0x18020501}, "v_pk_add_u16: a modifier of an absent source is set", 0},
      {young, {0xCCCA4003, 0x18020501}, "bit 23 is set and has no meaning here", 0},
      {young, {0xCC164003, 0x3C0E0501}, nullptr, 0},  // v_dot4_i32_iu8
      {young, {0xCC174003, 0x3C0E0501}, "v_dot4_u32_u8: takes no negation", 0},
      {young, {0xC8D00501, 0x00020102}, nullptr, 0},  // v_dual_mul_f32 v0, v1, v2 :: v_dual_mov_b32 v3, v2
      {young, {0xC8D00501, 0x00020105}, "v_mul_f32: both halves read VGPRs of one bank through one port", 1},
      {young, {0xC8C60501, 0x00020D02}, "v_mul_f32: both halves read VGPRs of one bank through one port", 1},
      {young, {0xCBD00501, 0x00020102}, "VOPD has no opcodes 15 and 8", 0},
      {young, {0xC8D00501, 0x00020302}, "v_mul_f32: an absent source is set and has no meaning here", 0},
  });
}
