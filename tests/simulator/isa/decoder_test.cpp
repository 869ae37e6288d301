// The decoder on words with known fields, and what it refuses. The encodings stand beside the cases, so that these
// tests need no LLVM.
#include "simulator/isa/decoder.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "simulator/isa/memory_formats.hpp"
#include "simulator/isa/printer.hpp"

namespace {

using namespace kiln::simulator;

constexpr CodeTarget gfx11{Generation::gfx11, WaveSize::wave32};
constexpr CodeTarget gfx11_wave64{Generation::gfx11, WaveSize::wave64};
constexpr CodeTarget gfx10_3{Generation::gfx10_3, WaveSize::wave32};

using Words = std::vector<std::uint32_t>;

Instruction decoded(const CodeTarget& target, const Words& words) {
  Instruction instruction;
  const auto fault = decode(target, words, 0x1000, instruction);
  INFO((fault ? fault->reason : std::string()));
  REQUIRE_FALSE(fault.has_value());
  CHECK(instruction.dwords == words.size());
  return instruction;
}

std::string text(const CodeTarget& target, const Words& words) { return to_text(decoded(target, words), target); }

Fault refused(const CodeTarget& target, const Words& words) {
  Instruction instruction;
  const auto fault = decode(target, words, 0x1000, instruction);
  REQUIRE(fault.has_value());
  CHECK(fault->address >= 0x1000);
  return *fault;
}

bool mentions(const Fault& fault, const std::string& words) { return fault.reason.find(words) != std::string::npos; }

// In the order of the address's registers, with what needs none at the ends.
std::string parts_of(const ImageShape& shape) {
  std::string parts;
  const auto add = [&parts](bool present, const char* part) {
    if (present) parts += parts.empty() ? std::string(part) : " " + std::string(part);
  };
  add(shape.gather, "gather");
  add(shape.ray_pointer != 0, "ray");
  add(shape.offset, "offset");
  add(shape.bias, "bias");
  add(shape.compare, "compare");
  add(shape.short_derivatives, "short");
  add(shape.derivatives, "derivatives");
  add(shape.coordinates, "xy");
  add(shape.level, "level");
  add(shape.clamp, "clamp");
  add(shape.zero, "zero");
  return parts;
}

}  // namespace

TEST_CASE("simulator::isa::decode: scalar formats") {
  CHECK(text(gfx11, {0x80048503}) == "s_add_u32 s4, s3, 5");
  CHECK(text(gfx11, {0xBE8000FF, 0x12345678}) == "s_mov_b32 s0, 0x12345678");
  CHECK(text(gfx11, {0xB004FFFF}) == "s_movk_i32 s4, 0xffff");
  CHECK(text(gfx11, {0xBFB00000}) == "s_endpgm");
  CHECK(text(gfx10_3, {0xBF810000}) == "s_endpgm");
  const Instruction branch = decoded(gfx11, {0xBFA5FFFE});  // s_cbranch_execz -2
  CHECK(branch.opcode == Opcode::s_cbranch_execz);
  CHECK(branch.offset == -8);
  const Instruction constant = decoded(gfx11, {0xB004FFFF});
  CHECK(constant.simm16 == -1);
  const Instruction unsigned_constant = decoded(gfx11, {0xB684FFFF});  // s_cmpk_ge_u32 s4, 0xffff
  CHECK(unsigned_constant.simm16 == 0xFFFF);
  CHECK(unsigned_constant.src[0].code == 4);
}

TEST_CASE("simulator::isa::decode: both generations' null and m0 come out alike") {
  const Instruction eleven = decoded(gfx11, {0xBE80007D});  // s_mov_b32 s0, m0
  const Instruction ten = decoded(gfx10_3, {0xBE80037C});
  CHECK(eleven.src[0].code == operand::m0);
  CHECK(ten.src[0].code == operand::m0);
  CHECK(decoded(gfx11, {0xF4000000, 0xF8000010}).src[1].code == operand::null);  // s_load_b32 s0, s[0:1], 0x10
  CHECK(decoded(gfx10_3, {0xF4000000, 0xFA000010}).src[1].code == operand::null);
}

TEST_CASE("simulator::isa::decode: v_cmpx writes EXEC, named by its field or not") {
  for (const CodeTarget& target : {gfx11, gfx10_3}) {
    const unsigned number = target.generation == Generation::gfx11 ? 0xCC : 0xD4;
    const Words base{0xD4000000 | number << 16, 0x00020300};
    for (const std::uint32_t dst : {0U, 126U}) {
      CHECK(decoded(target, {base[0] | dst, base[1]}).dst.code == operand::exec_lo);
      CHECK(text(target, {base[0] | dst, base[1]}) == "v_cmpx_gt_u32_e64 v0, v1");
    }
    CHECK(mentions(refused(target, {base[0] | 5, base[1]}), "EXEC alone"));
  }
}

TEST_CASE("simulator::isa::decode: e32 forms say what they read and write besides") {
  const Instruction compare = decoded(gfx11, {0x7C220501});  // v_cmp_lt_f32_e32 vcc_lo, v1, v2
  CHECK(compare.dst == Operand{operand::vcc_lo, DataType::mask});
  const Instruction comparex = decoded(gfx11, {0x7D220501});  // v_cmpx_lt_f32_e32 v1, v2
  CHECK(comparex.dst == Operand{operand::exec_lo, DataType::mask});
  const Instruction select = decoded(gfx11, {0x02060501});  // v_cndmask_b32_e32 v3, v1, v2, vcc_lo
  CHECK(select.src[2] == Operand{operand::vcc_lo, DataType::mask});
  const Instruction carry = decoded(gfx11, {0x40060501});  // v_add_co_ci_u32_e32 v3, vcc_lo, v1, v2, vcc_lo
  CHECK(carry.sdst.code == operand::vcc_lo);
  const Instruction scaled = decoded(gfx11, {0x58060501, 0x40000000});  // v_fmamk_f32 v3, v1, 2.0, v2
  CHECK(scaled.src[1].is_literal());
  CHECK(scaled.src[2].index() == 2);
}

TEST_CASE("simulator::isa::decode: halves of gfx11's e32 operands") {
  const Instruction half = decoded(gfx11, {0x65060581});  // v_add_f16 v131, v129, v2 as gfx10.3 has it
  CHECK(half.dst.index() == 3);
  CHECK(half.src[0].index() == 1);
  CHECK(half.op_sel == 0b1001);
  CHECK(to_text(half, gfx11) == "v_add_f16_e32 v3.h, v1.h, v2");
  const Instruction whole = decoded(gfx10_3, {0x65060581});
  CHECK(whole.dst.index() == 131);
  CHECK(whole.op_sel == 0);
}

TEST_CASE("simulator::isa::decode: modifiers of e64") {
  const Instruction add = decoded(gfx11, {0xD5038110, 0x68020501});
  CHECK(add.abs == 1);
  CHECK(add.neg == 3);
  CHECK(add.omod == 1);
  CHECK(add.clamp);
  CHECK(to_text(add, gfx11) == "v_add_f32_e64 v16, -|v1|, -v2 clamp mul:2");
  CHECK(text(gfx11, {0xD7034810, 0x00020501}) == "v_add_nc_u16 v16, v1, v2 op_sel:[1,0,1]");
}

TEST_CASE("simulator::isa::decode: all bits of a modifier of v_permlane16_b32 are its flag") {
  // v_permlane16_b32 v5, v1, s2, s3; "fetch inactive" and "bound control" are bits of op_sel.
  CHECK(text(gfx11, {0xD65B0005, 0x000C0501}) == "v_permlane16_b32 v5, v1, s2, s3");
  CHECK(text(gfx11, {0xD65B0805, 0x000C0501}) == "v_permlane16_b32 v5, v1, s2, s3 op_sel:[1,0]");
  CHECK(text(gfx11, {0xD65B1005, 0x000C0501}) == "v_permlane16_b32 v5, v1, s2, s3 op_sel:[0,1]");
  const Instruction all = decoded(gfx11, {0xD65B5B05, 0x600C0501});
  CHECK(all.neg == 0);
  CHECK(all.abs == 0);
  CHECK(all.op_sel == 3);
}

TEST_CASE("simulator::isa::decode: formats that images alone have") {
  struct Layout {
    unsigned gfx11, gfx10_3;  // the numbers of its first type
    std::vector<NumberType> types;
    std::array<std::uint8_t, 4> bits;
    std::uint8_t block;
  };
  using T = NumberType;
  const Layout layouts[] = {{64, 128, {T::srgb}, {8, 0, 0, 0}, 0},
                            {65, 129, {T::srgb}, {8, 8, 0, 0}, 0},
                            {66, 130, {T::srgb}, {8, 8, 8, 8}, 0},
                            {67, 132, {T::exponent}, {9, 9, 9, 5}, 0},
                            {68, 133, {T::unorm}, {5, 6, 5, 0}, 0},
                            {69, 134, {T::unorm}, {5, 5, 5, 1}, 0},
                            {70, 135, {T::unorm}, {1, 5, 5, 5}, 0},
                            {71, 136, {T::unorm}, {4, 4, 4, 4}, 0},
                            {72, 137, {T::unorm}, {4, 4, 0, 0}, 0},
                            {109, 169, {T::unorm, T::srgb}, {32, 32, 0, 0}, 1},
                            {111, 171, {T::unorm, T::srgb}, {32, 32, 32, 32}, 2},
                            {113, 173, {T::unorm, T::srgb}, {32, 32, 32, 32}, 3},
                            {115, 175, {T::unorm, T::snorm}, {32, 32, 0, 0}, 4},
                            {117, 177, {T::unorm, T::snorm}, {32, 32, 32, 32}, 5},
                            {119, 179, {T::floating}, {32, 32, 32, 32}, 6},
                            {120, 180, {T::floating}, {32, 32, 32, 32}, 8},
                            {121, 181, {T::unorm, T::srgb}, {32, 32, 32, 32}, 7}};
  for (const Generation generation : {Generation::gfx11, Generation::gfx10_3}) {
    std::vector<bool> known(512);
    for (const Layout& layout : layouts) {
      unsigned number = generation == Generation::gfx11 ? layout.gfx11 : layout.gfx10_3;
      for (const NumberType type : layout.types) {
        INFO(number);
        const auto format = find_image_format(generation, number);
        REQUIRE(format.has_value());
        CHECK(format->type == type);
        CHECK(format->bits == layout.bits);
        CHECK(format->block == layout.block);
        known[number++] = true;
      }
    }
    // The others are those of buffers.
    for (unsigned number = 0; number < 600; ++number) {
      if (number < known.size() && known[number]) continue;
      INFO(number);
      CHECK(find_image_format(generation, number).has_value() == find_buffer_format(generation, number).has_value());
    }
  }
}

TEST_CASE("simulator::isa::decode: formats of buffers are numbered by layout, then by type") {
  struct Layout {
    const char* name;
    unsigned gfx11;
    std::vector<const char*> gfx11_types;
    unsigned gfx10_3;
    std::vector<const char*> gfx10_3_types;
  };
  const std::vector<const char*> whole{"UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT"};
  const std::vector<const char*> with_float{"UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT", "FLOAT"};
  const std::vector<const char*> wide{"UINT", "SINT", "FLOAT"}, number{"FLOAT"};
  const Layout layouts[] = {{"8", 1, whole, 1, whole},
                            {"16", 7, with_float, 7, with_float},
                            {"8_8", 14, whole, 14, whole},
                            {"11_11_10", 31, number, 37, with_float},
                            {"8_8_8_8", 42, whole, 56, whole},
                            {"32_32", 48, wide, 62, wide},
                            {"16_16_16_16", 51, with_float, 65, with_float},
                            {"32_32_32", 58, wide, 72, wide},
                            {"32_32_32_32", 61, wide, 75, wide}};
  for (const Layout& layout : layouts) {
    for (const Generation generation : {Generation::gfx11, Generation::gfx10_3}) {
      unsigned at = generation == Generation::gfx11 ? layout.gfx11 : layout.gfx10_3;
      for (const char* type : generation == Generation::gfx11 ? layout.gfx11_types : layout.gfx10_3_types) {
        CHECK(buffer_format_name(generation, at++) == "BUF_FMT_" + std::string(layout.name) + "_" + type);
      }
    }
  }
  CHECK(buffer_format_name(Generation::gfx11, 0) == "BUF_FMT_INVALID");
  CHECK_FALSE(find_buffer_format(Generation::gfx11, 0).has_value());
  CHECK_FALSE(find_buffer_format(Generation::gfx11, 64).has_value());
  CHECK_FALSE(find_buffer_format(Generation::gfx10_3, 78).has_value());
  CHECK(buffer_format_name(Generation::gfx11, 200).empty());
}

TEST_CASE("simulator::isa::decode: across lanes") {
  const Instruction row = decoded(gfx11, {0x0A0608FA, 0x5F9D1109});
  CHECK(to_text(row, gfx11) == "v_subrev_f32_dpp v3, -v9, |v4| row_shr:1 row_mask:0x5 bank_mask:0xf bound_ctrl:1 fi:1");
  CHECK(row.lanes == LaneControl::dpp16);
  CHECK(row.src[0].index() == 9);
  const Instruction eight = decoded(gfx11, {0x0A0608EA, 0xFAC68809});
  CHECK(eight.dpp.selectors == std::array<std::uint8_t, 8>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(eight.dpp.fetch_inactive);
  const Instruction part = decoded(gfx10_3, {0x0A0608F9, 0x1192AD03});
  CHECK(part.sdwa.dst == Select::word1);
  CHECK(part.sdwa.unused == Unused::sign_extend);
  CHECK(part.src[0] == Operand{3, DataType::f32});
  CHECK(mentions(refused(gfx11, {0x0A0608F9, 0x1192AD03}), "249 is reserved"));
  CHECK(mentions(refused(gfx11, {0x0A0608FA, 0x5F9D8009}), "DPP control 384 is reserved"));
}

TEST_CASE("simulator::isa::decode: two operations in one") {
  // v_dual_mul_f32 v0, v1, v2 :: v_dual_mov_b32 v3, 0x12345678
  const Instruction dual = decoded(gfx11, {0xC8D00501, 0x000200FF, 0x12345678});
  CHECK(dual.opcode == Opcode::v_mul_f32);
  CHECK(dual.y.opcode == Opcode::v_mov_b32);
  CHECK(dual.y.dst.index() == 3);
  CHECK(dual.y.src[0].is_literal());
  CHECK(dual.literal == 0x12345678);
  CHECK(mentions(refused(gfx11_wave64, {0xC8D00501, 0x000200FF, 0x12345678}), "wave32 only"));
}

TEST_CASE("simulator::isa::decode: memory") {
  const Instruction load = decoded(gfx11, {0xDC52FFF0, 0x03040005});
  CHECK(to_text(load, gfx11) == "global_load_b32 v3, v5, s[4:5] offset:-16 glc slc dlc");
  CHECK(load.offset == -16);
  CHECK(load.src[0].type == DataType::b32);
  CHECK(load.src[2] == Operand{4, DataType::b64});
  const Instruction same = decoded(gfx10_3, {0xDC339FF0, 0x03040005});
  CHECK(same.opcode == load.opcode);
  CHECK(same.offset == -16);
  const Instruction wide = decoded(gfx10_3, {0xE030F004, 0x80430100});
  CHECK(wide.idxen);
  CHECK(wide.offen);
  CHECK(wide.src[0].type == DataType::b64);
  const Instruction pair = decoded(gfx11, {0xD8380201, 0x00070502});
  CHECK(pair.offset == 1);
  CHECK(pair.offset1 == 2);
  // An atomic returns what was there only with glc.
  CHECK_FALSE(decoded(gfx11, {0xDCD60000, 0x007C0204}).dst.present());
  CHECK(decoded(gfx11, {0xDCD64000, 0x037C0204}).dst.index() == 3);
  CHECK(decoded(gfx11, {0xDC510004, 0x037C0000}).src[0].type == DataType::none);  // scratch_load_b32 v3, off, off
}

TEST_CASE("simulator::isa::decode: what is unknown is named") {
  CHECK(mentions(refused(gfx11, {0x83848503}), "SOP2 has no opcode 7"));
  CHECK(mentions(refused(gfx11, {0xD0000000}), "no encoding starts"));
  CHECK(mentions(refused(gfx11, {0xF0080000, 0}), "image_load_pck"));
  CHECK(mentions(refused(gfx10_3, {0xF8000000, 0}), "exp"));
  CHECK(mentions(refused(gfx11, {0xCD000010, 0}), "v_interp_p10_f32"));
  CHECK(mentions(refused(gfx11, {0xCE100010}), "lds_direct_load"));
  CHECK(refused(gfx11, {0x83848503}).kind == FaultKind::unknown_opcode);
  CHECK(refused(gfx11, {0x83848503}).dword == 0x83848503);
}

TEST_CASE("simulator::isa::decode: operands that no instruction takes") {
  CHECK(mentions(refused(gfx11, {0xBE8101FF, 0}), "starts at operand 1"));  // s_mov_b64 s[1:2]
  CHECK(mentions(refused(gfx11, {0xBE8000D2}), "operand 210 is reserved"));
  CHECK(mentions(refused(gfx11, {0xD9F80000, 0xFF000000}), "exceed 256"));     // ds_load_b128? v[255:258]
  CHECK(mentions(refused(gfx11, {0xD5034010, 0x00020501}), "has no halves"));  // op_sel on f32
  CHECK(mentions(refused(gfx11, {0xD5250110, 0x00020501}), "absolute"));       // |v1| of an integer
  CHECK(mentions(refused(gfx11, {0xD8340000 | 1u << 17, 0x00000502}), "GDS"));
}

TEST_CASE("simulator::isa::decode: groups of scalar registers end with VCC, which counts as s106 and s107") {
  for (const CodeTarget& target : {gfx11, gfx10_3}) {
    const std::uint32_t none = target.generation == Generation::gfx11 ? 0xF8000000 : 0xFA000000;
    const auto load = [&](unsigned opcode, unsigned dst, unsigned base) -> Words {
      return {0xF4000000 | opcode << 18 | dst << 6 | base / 2, none};
    };
    const auto last = [&](const Words& words) { return text(target, words).substr(text(target, words).find(' ') + 1); };
    CHECK(last(load(1, 106, 0)) == "vcc, s[0:1], null");
    CHECK(last(load(2, 104, 0)) == "s[104:107], s[0:1], null");
    CHECK(last(load(3, 100, 0)) == "s[100:107], s[0:1], null");
    CHECK(last(load(4, 92, 0)) == "s[92:107], s[0:1], null");
    CHECK(last(load(8, 107, 104)) == "vcc_hi, s[104:107], null");
    CHECK(last(load(10, 104, 104)) == "s[104:107], s[104:107], null");
    CHECK(last(load(11, 100, 4)) == "s[100:107], s[4:7], null");
    CHECK(last(load(12, 92, 4)) == "s[92:107], s[4:7], null");
    CHECK(last(load(2, 120, 0)) == "ttmp[12:15], s[0:1], null");
    CHECK(last(load(4, 108, 0)) == "ttmp[0:15], s[0:1], null");
    for (const auto& [opcode, dst] : {std::pair{2U, 106U}, {3U, 104U}, {4U, 96U}, {2U, 102U}, {3U, 120U}, {4U, 112U}}) {
      CHECK(mentions(refused(target, load(opcode, dst, 0)), "starts at operand " + std::to_string(dst)));
    }
    CHECK(mentions(refused(target, load(8, 0, 106)), "starts at operand 106"));
  }
  CHECK(text(gfx11, {0xE0500000, 0x805A0102}) == "buffer_load_b32 v1, v2, s[104:107], 0 offen");
  CHECK(text(gfx10_3, {0xE0301000, 0x801A0102}) == "buffer_load_dword v1, v2, s[104:107], 0 offen");
}

TEST_CASE("simulator::isa::decode: sums of matrices") {
  CHECK(text(gfx11, {0xCC404008, 0x1C222100}) == "v_wmma_f32_16x16x16_f16 v[8:15], v[0:7], v[16:23], v[8:15]");
  CHECK(text(gfx11_wave64, {0xCC404008, 0x1C222100}) == "v_wmma_f32_16x16x16_f16 v[8:11], v[0:7], v[16:23], v[8:11]");
  CHECK(text(gfx11, {0xCC404008, 0x1BCA2100}) == "v_wmma_f32_16x16x16_f16 v[8:15], v[0:7], v[16:23], 1.0");
  CHECK(text(gfx11, {0xCC426008, 0x1C222100}) ==
        "v_wmma_f16_16x16x16_f16 v[8:15], v[0:7], v[16:23], v[8:15] op_sel:[0,0,1]");
  CHECK(text(gfx11, {0xCC44C008, 0x7C220900}) ==
        "v_wmma_i32_16x16x16_iu8 v[8:15], v[0:3], v[4:7], v[8:15] neg_lo:[1,1,0] clamp");
  CHECK(text(gfx11, {0xCC454008, 0x1A160900}) == "v_wmma_i32_16x16x16_iu4 v[8:15], v[0:1], v[4:5], 5");
  CHECK(mentions(refused(gfx11, {0xCC404808, 0x1C222100}), "halves"));      // of A
  CHECK(mentions(refused(gfx11, {0xCC406008, 0x1C222100}), "halves"));      // of a float
  CHECK(mentions(refused(gfx11, {0xCC40C008, 0x1C222100}), "clamp"));       // of floats
  CHECK(mentions(refused(gfx11, {0xCC444208, 0x1C220900}), "negation"));    // neg_hi of bytes
  CHECK(mentions(refused(gfx11, {0xCC404008, 0x1C222080}), "is no VGPR"));  // A from a constant
  CHECK(mentions(refused(gfx11, {0xCC454008, 0x1A160804}), "is no VGPR"));  // from SGPRs
  CHECK(mentions(refused(gfx11, {0xCC400008, 0x1C222100}), "op_sel_hi"));
  CHECK(mentions(refused(gfx10_3, {0xCC404008, 0x1C222100}), "VOP3P has no opcode 64"));
}

TEST_CASE("simulator::isa::decode: comparisons with a lane of another row, on both generations") {
  // v_cmp_eq_i32: v1 of another lane against v4
  for (const CodeTarget& target : {gfx11, gfx10_3}) {
    const std::uint32_t number = target.generation == Generation::gfx11 ? 0x42 : 0x82;
    const Words by_quad{0x7C000000 | number << 17 | 4 << 9 | 250, 0xFF00B101};
    const Instruction quad = decoded(target, by_quad);
    CHECK(quad.opcode == Opcode::v_cmp_eq_i32);
    CHECK(quad.lanes == LaneControl::dpp16);
    CHECK(quad.dpp.control == 0xB1);
    CHECK(quad.src[0].index() == 1);
    CHECK(quad.src[1].index() == 4);
    CHECK(decoded(target, {0x7C000000 | number << 17 | 4 << 9 | 233, 0x00FAC688U << 8 | 1}).lanes == LaneControl::dpp8);
  }
}

TEST_CASE("simulator::isa::decode: whole and partial hardware registers") {
  CHECK(text(gfx11, {0xB884F801}) == "s_getreg_b32 s4, hwreg(HW_REG_MODE)");
  CHECK(text(gfx11, {0xB884F001}) == "s_getreg_b32 s4, hwreg(HW_REG_MODE, 0, 31)");
  CHECK(text(gfx11, {0xB884F041}) == "s_getreg_b32 s4, hwreg(HW_REG_MODE, 1, 31)");
  CHECK(text(gfx11, {0xB8840901}) == "s_getreg_b32 s4, hwreg(HW_REG_MODE, 4, 2)");
  CHECK(text(gfx11, {0xB884981D}) == "s_getreg_b32 s4, hwreg(HW_REG_SHADER_CYCLES, 0, 20)");
  CHECK(text(gfx11, {0xB904F801}) == "s_setreg_b32 hwreg(HW_REG_MODE), s4");
  CHECK(text(gfx10_3, {0xB904F801}) == "s_getreg_b32 s4, hwreg(HW_REG_MODE)");
  CHECK(text(gfx10_3, {0xB984F801}) == "s_setreg_b32 hwreg(HW_REG_MODE), s4");
  struct Named {
    std::uint32_t id;
    const char* eleven;
    const char* ten;
  };
  for (const Named& each :
       {Named{2, "HW_REG_STATUS", "HW_REG_STATUS"}, Named{3, "HW_REG_TRAPSTS", "HW_REG_TRAPSTS"}, Named{4, "4", "4"},
        Named{5, "HW_REG_GPR_ALLOC", "HW_REG_GPR_ALLOC"}, Named{6, "HW_REG_LDS_ALLOC", "HW_REG_LDS_ALLOC"},
        Named{16, "16", "HW_REG_TBA_LO"}, Named{18, "HW_REG_PERF_SNAPSHOT_PC_LO", "HW_REG_TMA_LO"},
        Named{23, "HW_REG_HW_ID1", "HW_REG_HW_ID1"}, Named{25, "25", "HW_REG_POPS_PACKER"}}) {
    const std::string start = "s_getreg_b32 s4, hwreg(";
    CHECK(text(gfx11, {0xB884F800 | each.id}) == start + each.eleven + ")");
    CHECK(text(gfx10_3, {0xB904F800 | each.id}) == start + each.ten + ")");
  }
}

TEST_CASE("simulator::isa::decode: consecutive and listed address registers of images") {
  const std::string tail = " dmask:0xf dim:SQ_RSRC_IMG_2D";
  CHECK(text(gfx11, {0xF0000F04, 0x00020A01}) == "image_load v[10:13], v[1:2], s[8:15]" + tail);
  CHECK(text(gfx11, {0xF0000F05, 0x00020A01, 0x00000007}) == "image_load v[10:13], [v1, v7], s[8:15]" + tail);
  // The last of five goes on.
  CHECK(text(gfx11, {0xF0700F05, 0x10020A01, 0x05040309}) ==
        "image_sample_d v[10:13], [v1, v9, v3, v4, v[5:6]], s[8:15], s[16:19]" + tail);
  CHECK(text(gfx10_3, {0xF0880F0C, 0x00820A01, 0x05040309, 0x00000014}) ==
        "image_sample_d v[10:13], [v1, v9, v3, v4, v5, v20], s[8:15], s[16:19]" + tail);
}

TEST_CASE("simulator::isa::image_shape: address components by instruction name") {
  struct Named {
    Opcode opcode;
    const char* parts;
    unsigned registers;  // of a two-dimensional image
  };
  const Named all[] = {{Opcode::image_load, "xy", 2},
                       {Opcode::image_load_mip, "xy level", 3},
                       {Opcode::image_store_mip, "xy level", 3},
                       {Opcode::image_get_resinfo, "level", 1},
                       {Opcode::image_get_lod, "xy", 2},
                       {Opcode::image_bvh_intersect_ray, "ray xy", 11},
                       {Opcode::image_bvh64_intersect_ray, "ray xy", 12},
                       {Opcode::image_sample, "xy", 2},
                       {Opcode::image_sample_l, "xy level", 3},
                       {Opcode::image_sample_c_lz, "compare xy zero", 3},
                       {Opcode::image_sample_lz_o, "offset xy zero", 3},
                       {Opcode::image_sample_b_cl_o, "offset bias xy clamp", 5},
                       {Opcode::image_sample_d_g16, "short derivatives xy", 4},
                       {Opcode::image_sample_cd, "derivatives xy", 6},
                       {Opcode::image_sample_c_d_cl_o, "offset compare derivatives xy clamp", 9},
                       {Opcode::image_sample_c_d_cl_o_g16, "offset compare short derivatives xy clamp", 7},
                       {Opcode::image_gather4_l, "gather xy level", 3},
                       {Opcode::image_gather4_c_b_cl, "gather bias compare xy clamp", 5}};
  for (const Named& each : all) {
    INFO(info(each.opcode).name);
    const ImageShape shape = image_shape(each.opcode);
    CHECK(parts_of(shape) == each.parts);
    CHECK(address_count(shape, ImageDim::two, false) == each.registers);
  }
}

TEST_CASE("simulator::isa::decode: messages that are answered") {
  CHECK(text(gfx11, {0xBE824D83}) == "s_sendmsg_rtn_b64 s[2:3], sendmsg(MSG_RTN_GET_REALTIME)");
  CHECK(text(gfx11, {0xBE824C85}) == "s_sendmsg_rtn_b32 s2, sendmsg(MSG_RTN_GET_TBA)");
  CHECK(text(gfx11, {0xBE824C84}) == "s_sendmsg_rtn_b32 s2, sendmsg(MSG_RTN_SAVE_WAVE)");
  CHECK(mentions(refused(gfx11, {0xBE834D83}), "starts at operand 3"));
  CHECK(mentions(refused(gfx10_3, {0xBE824D83}), "SOP1 has no opcode 77"));
}

TEST_CASE("simulator::isa::decode: code that ends within an instruction") {
  const std::vector<Words> whole = {{0xBE8000FF, 1},
                                    {0xF4000000, 0xF8000000},
                                    {0xD5038110, 0x68020501},
                                    {0xC8D00501, 0x000200FF, 1},
                                    {0x0A0608FA, 0x5F9D1109}};
  for (const Words& words : whole) {
    for (std::size_t length = 0; length < words.size(); ++length) {
      Instruction instruction;
      const auto fault = decode(gfx11, std::span(words).first(length), 0x40, instruction);
      REQUIRE(fault.has_value());
      CHECK(fault->kind == FaultKind::overrun);
      CHECK(fault->address == 0x40);
    }
    CHECK(decoded(gfx11, words).dwords == words.size());
  }
}
