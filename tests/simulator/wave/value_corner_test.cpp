// Operands at which the answer changes, as literals worked out by hand from AMD's instruction set references.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "tests/simulator/wave/bench.hpp"

namespace kiln::simulator::test {
namespace {

using encode::v;
using U = std::uint32_t;
using W = std::uint64_t;

struct Corner {
  std::string name, text;
  std::vector<W> in, out;
};

// Lines of a name and operands=results, in hexadecimal.
std::vector<Corner> corners(const std::string& table) {
  std::vector<Corner> all;
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    for (std::string word; words >> word;) {
      Corner row{name, name + " " + word, {}, {}};
      bool result = false;
      for (std::size_t at = 0; at < word.size();) {
        const std::size_t end = std::min(word.find_first_of(",=", at), word.size());
        (result ? row.out : row.in).push_back(std::stoull(word.substr(at, end - at), nullptr, 16));
        result = result || (end < word.size() && word[end] == '=');
        at = end + 1;
      }
      all.push_back(row);
    }
  }
  REQUIRE(!all.empty());
  return all;
}

// In the VOP3 form, of lane 9: sources v2, v4 and v6, as many as there are, to v8.
void check_corners(W mask, bool clamp, const char* table) {
  for (const Corner& row : corners(table)) {
    Bench bench;
    for (unsigned i = 0; i < row.in.size(); ++i) bench.set_vgpr64(2 + 2 * i, 9, row.in[i]);
    const unsigned second = row.in.size() > 1 ? v(4) : 0, third = row.in.size() > 2 ? v(6) : 0;
    INFO(row.text);
    REQUIRE_FALSE(bench.run(encode::vop3(row.name.c_str(), 8, v(2), second, third, {.clamp = clamp})));
    CHECK((bench.vgpr64(8, 9) & mask) == row.out.at(0));
  }
}

constexpr W word_mask = 0xFFFFFFFF, half_mask = 0xFFFF, whole = ~W{0};

}  // namespace

TEST_CASE("simulator corners: two scalar sources, where SCC changes", "[simulator][corners]") {
  // Two sources and SCC before; result and SCC.
  for (const Corner& row : corners(R"(
      s_add_u32 5,0,1=5,0 FFFFFFFF,1,0=0,1 FFFFFFFE,1,1=FFFFFFFF,0
      s_sub_u32 7,7,1=0,0 6,7,0=FFFFFFFF,1
      s_add_i32 7FFFFFFF,1,0=80000000,1 7FFFFFFF,0,1=7FFFFFFF,0 80000000,FFFFFFFF,0=7FFFFFFF,1
      s_sub_i32 80000000,1,0=7FFFFFFF,1 80000000,80000000,1=0,0 0,80000000,0=80000000,1
      s_addc_u32 FFFFFFFF,0,1=0,1 FFFFFFFF,0,0=FFFFFFFF,0 FFFFFFFF,FFFFFFFF,1=FFFFFFFF,1
      s_subb_u32 8,7,1=0,0 8,8,1=FFFFFFFF,1 8,8,0=0,0 0,FFFFFFFF,1=0,1
      s_lshl1_add_u32 7FFFFFFF,1,1=FFFFFFFF,0 80000000,0,0=0,1
      s_lshl2_add_u32 3FFFFFFF,3,1=FFFFFFFF,0 3FFFFFFF,4,0=0,1
      s_lshl3_add_u32 1FFFFFFF,7,1=FFFFFFFF,0 20000000,1,0=1,1
      s_lshl4_add_u32 FFFFFFF,F,1=FFFFFFFF,0 FFFFFFF,10,0=0,1
      s_min_i32 5,5,1=5,0 80000000,7FFFFFFF,0=80000000,1
      s_min_u32 5,5,1=5,0 80000000,7FFFFFFF,1=7FFFFFFF,0
      s_max_i32 80000000,7FFFFFFF,1=7FFFFFFF,0
      s_max_u32 80000000,7FFFFFFF,0=80000000,1
      s_absdiff_i32 3,3,1=0,0 80000000,7FFFFFFF,0=FFFFFFFF,1 1,2,0=1,1
      s_lshl_b32 80000000,1,1=0,0 1,21,0=2,1
      s_lshl_b64 1,40,0=1,1 1,3F,0=8000000000000000,1
      s_lshr_b32 1,1,1=0,0 80000000,3F,0=1,1
      s_lshr_b64 8000000000000000,7F,0=1,1
      s_ashr_i32 80000000,1F,0=FFFFFFFF,1 7FFFFFFF,1F,1=0,0
      s_ashr_i64 8000000000000000,3F,0=FFFFFFFFFFFFFFFF,1
      s_bfe_u32 FFFFFFFF,5,1=0,0 FFFFFFFF,20001F,0=1,1 12345678,200000,0=12345678,1 12345678,7F0004,0=1234567,1
      s_bfe_i32 FFFFFFFF,1F,1=0,0 80,10007,0=FFFFFFFF,1 80000000,200000,0=80000000,1 80000000,1001F,0=FFFFFFFF,1
      s_bfe_u64 FFFFFFFFFFFFFFFF,20,1=0,0 FFFFFFFFFFFFFFFF,40003F,0=1,1 FFFFFFFFFFFFFFFF,210000,0=1FFFFFFFF,1
      s_bfe_i64 100000000,10020,0=FFFFFFFFFFFFFFFF,1 FFFFFFFFFFFFFFFF,1,1=0,0
      s_bfm_b32 0,1F,1=0,1 21,1F,0=80000000,0
      s_bfm_b64 40,1,1=0,1 21,1F,0=FFFFFFFF80000000,0
      s_mul_hi_u32 FFFFFFFF,FFFFFFFF,1=FFFFFFFE,1
      s_mul_hi_i32 FFFFFFFF,1,0=FFFFFFFF,0 80000000,80000000,1=40000000,1
      s_and_b32 1,2,1=0,0
      s_and_b64 100000000,1,1=0,0
      s_or_b64 100000000,0,0=100000000,1
      s_or_b32 0,0,1=0,0
      s_xor_b64 10000000000,10000000000,1=0,0
      s_nand_b32 FFFFFFFF,FFFFFFFF,1=0,0
      s_nand_b64 FFFFFFFFFFFFFFFF,FFFFFFFF,0=FFFFFFFF00000000,1
      s_nor_b64 FFFFFFFF00000000,FFFFFFFF,1=0,0
      s_xnor_b64 5,FFFFFFFFFFFFFFFA,1=0,0
      s_and_not1_b64 30000000000,30000000000,1=0,0
      s_or_not1_b64 0,FFFFFFFFFFFFFFFF,1=0,0
      s_or_not1_b32 0,FFFFFFFF,1=0,0)")) {
    Bench bench;
    bench.set_sgpr64(2, row.in[0]);
    bench.set_sgpr64(4, row.in[1]);
    bench.wave.scc = row.in[2] != 0;
    INFO(row.text);
    REQUIRE_FALSE(bench.run({encode::sop2(row.name.c_str(), 6, 2, 4)}));
    CHECK(bench.wave.scalar64(6) == row.out[0]);
    CHECK(bench.wave.scc == (row.out[1] != 0));
  }
}

TEST_CASE("simulator corners: scalar registers found by M0, to the last one", "[simulator][corners]") {
  constexpr unsigned m0 = 125;
  struct Row {
    const char* name;
    unsigned dst, src;
    U m0;
    unsigned changed;  // 0: refused
    const char* reason;
  };
  const Row rows[] = {{"s_movrels_b32", 20, 2, 103, 20, ""},
                      {"s_movrels_b32", 20, 2, 104, 0, "s_movrels_b32: M0 leads to s106 of 106 SGPRs"},
                      {"s_movrels_b64", 20, 2, 102, 20, ""},
                      {"s_movrels_b64", 20, 2, 103, 0, "s_movrels_b64: M0 leads to s105 of 106 SGPRs"},
                      {"s_movreld_b32", 2, 8, 103, 105, ""},
                      {"s_movreld_b32", 2, 8, 104, 0, "s_movreld_b32: M0 leads to s106 of 106 SGPRs"},
                      {"s_movreld_b64", 2, 8, 102, 104, ""},
                      {"s_movreld_b64", 2, 8, 103, 0, "s_movreld_b64: M0 leads to s105 of 106 SGPRs"},
                      {"s_movrelsd_2_b32", 2, 8, 96 | 103U << 16U, 105, ""},
                      {"s_movrelsd_2_b32", 2, 8, 98, 0, "s_movrelsd_2_b32: M0 leads to s106 of 106 SGPRs"},
                      {"s_movrelsd_2_b32", 2, 8, 104U << 16U, 0, "s_movrelsd_2_b32: M0 leads to s106 of 106 SGPRs"},
                      {"s_movrelsd_2_b32", 2, 8, 0xFC00FC01, 2, ""}};  // ten bits of each half count
  for (const Row& row : rows) {
    Bench bench;
    for (unsigned i = 0; i < 106; ++i) bench.sgpr(i) = 1000 + i;
    bench.sgpr(m0) = row.m0;
    INFO(row.name << " " << std::hex << row.m0);
    const auto fault = bench.run({encode::sop1(row.name, row.dst, row.src)});
    CHECK((fault ? fault->reason : std::string()) == row.reason);
    for (unsigned i = 0; i < 106; ++i) {
      const bool wide = std::string(row.name).find("b64") != std::string::npos;
      const bool moved = row.changed != 0 && (i == row.changed || (wide && i == row.changed + 1));
      INFO("s" << i);
      CHECK((bench.sgpr(i) != 1000 + i) == moved);
    }
  }
}

TEST_CASE("simulator corners: one vector source", "[simulator][corners]") {
  check_corners(word_mask, false, R"(
      v_cls_i32 0=FFFFFFFF FFFFFFFF=FFFFFFFF 1=1F FFFFFFFE=1F 80000000=1 40000000=1
      v_clz_i32_u32 0=FFFFFFFF 1=1F 80000000=0
      v_ctz_i32_b32 0=FFFFFFFF 1=0 80000000=1F
      v_fract_f32 9E3CE508=3F7FFFFF BE800000=3F400000 40200000=3F000000
      v_sin_f32 7F800000=FFC00000 80000000=80000000 3E800000=3F800000 43802000=0 437F4000=3F800000
      v_cos_f32 FF800000=FFC00000 43804000=3F800000 437F8000=BF800000
      v_rcp_f32 1=7F800000 7F7FFFFF=0
      v_rsq_f32 80000001=FF800000 40800000=3F000000
      v_sqrt_f32 1=0
      v_log_f32 1=FF800000
      v_exp_f32 C2FE0000=0 C2FC0000=800000
      v_frexp_exp_i32_f32 7F7FFFFF=80 3F800000=1 1=FFFFFF6C 0=0 7F800000=0 7FC00000=0
      v_frexp_mant_f32 7F7FFFFF=3F7FFFFF C0400000=BF400000 80000000=80000000 FF800000=FF800000
      v_frexp_exp_i32_f64 7FEFFFFFFFFFFFFF=400 10000000000000=FFFFFC03 FFFFFFFFFFFFF=FFFFFC02 1=FFFFFBCF
      v_frexp_exp_i32_f64 FFF0000000000000=0
      v_cvt_i32_f32 4F000000=7FFFFFFF 4EFFFFFF=7FFFFF80 CF000000=80000000 CEFFFFFF=80000080 FF800000=80000000
      v_cvt_i32_f32 7FC00000=0 BFFFFFFF=FFFFFFFF
      v_cvt_u32_f32 4F000000=80000000 4EFFFFFF=7FFFFF80 4F7FFFFF=FFFFFF00 4F800000=FFFFFFFF 7F800000=FFFFFFFF
      v_cvt_u32_f32 BF800000=0 7FC00000=0 3F800000=1
      v_cvt_i32_f64 C1E0000000200000=80000000 C1E0000000100000=80000000 C1DFFFFFFFE00000=80000001
      v_cvt_i32_f64 41DFFFFFFFE00000=7FFFFFFF 41E0000000000000=7FFFFFFF 7FF8000000000000=0
      v_cvt_u32_f64 41EFFFFFFFF00000=FFFFFFFF 41EFFFFFFFC00000=FFFFFFFE 41F0000000000000=FFFFFFFF 3FEFFFFFFFFFFFFF=0
      v_cvt_u32_f64 3FF0000000000000=1 BFF0000000000000=0 7FF8000000000000=0
      v_cvt_nearest_i32_f32 3F000000=1 BF000000=0 BFC00000=FFFFFFFF 40200000=3
      v_cvt_floor_i32_f32 BF000000=FFFFFFFF 3F7FFFFF=0
      v_cvt_off_f32_i4 0=0 F7=3EE00000 8=BF000000 F=BD800000)");
  check_corners(half_mask, false, R"(
      v_sat_pk_u8_i16 10000FF=FFFF FE0001=FE01 FFFF8000=0
      v_fract_f16 8001=3BFF
      v_frexp_exp_i16_f16 7BFF=10 FE00=0
      v_frexp_mant_f16 7BFF=3BFF FC00=FC00
      v_cvt_u16_f16 7BFF=FFE0
      v_cvt_i16_f16 7800=7FFF F800=8000
      v_cvt_norm_i16_f16 3800=4000
      v_cvt_norm_u16_f16 3800=8000 4000=FFFF)");
  check_corners(whole, false, R"(
      v_fract_f64 BC00000000000000=3FEFFFFFFFFFFFFF BFE0000000000000=3FE0000000000000
      v_frexp_mant_f64 7FEFFFFFFFFFFFFF=3FEFFFFFFFFFFFFF FFFFFFFFFFFFF=3FEFFFFFFFFFFFFE
      v_frexp_mant_f64 8000000000000001=BFE0000000000000 8000000000000000=8000000000000000)");
}

TEST_CASE("simulator corners: two and three vector sources", "[simulator][corners]") {
  check_corners(word_mask, false, R"(
      v_cvt_pk_u16_u32 FFFF,10000=FFFFFFFF FFFE,1=1FFFE
      v_cvt_pk_i16_i32 8000,FFFF7FFF=80007FFF 7FFE,FFFF8001=80017FFE
      v_mul_dx9_zero_f32 0,7F800000=0 7FC00000,80000000=0 40000000,C0400000=C0C00000
      v_subrev_f32 3F800000,40400000=40000000
      v_bfm_b32 20,5=0 1F,1=FFFFFFFE
      v_mul_i32_i24 800000,7FFFFF=800000
      v_mul_hi_i32_i24 800000,800000=4000 FFFFFF,1=FFFFFFFF
      v_mul_hi_u32_u24 FFFFFFFF,FFFFFF=FFFF)");
  check_corners(word_mask, false, R"(
      v_cvt_pk_u8_f32 43800000,0,0=FF 3F000000,1,0=0 3FC00000,1,0=200
      v_cubeid_f32 0,0,0=40800000
      v_cubesc_f32 0,0,0=0
      v_cubetc_f32 0,0,0=80000000
      v_sad_u8 FF0180,FF008001,1=2FD
      v_sad_hi_u8 FF,0,7=FF0007
      v_sad_u16 FFFF,FFFF0000,2=20000
      v_sad_u32 1,3,5=7
      v_msad_u8 11223344,40,0=4 11223344,1000000,0=10
      v_lerp_u8 FF010203,FF020203,1010000=FF020203
      v_perm_b32 80112233,44558077,10407=77803380 80112233,44558077,8090A0B=FF0000FF 80112233,44558077,C0D0706=FF8011
      v_alignbit_b32 12345678,9ABCDEF0,24=89ABCDEF
      v_alignbyte_b32 12345678,9ABCDEF0,7=3456789A
      v_mad_i32_i24 FFFFFF,2,1=FFFFFFFF
      v_mad_u32_u24 FF000002,3,1=7
      v_mad_i32_i16 FFFF,7FFF,0=FFFF8001
      v_mad_u32_u16 FFFF,FFFF,FFFFFFFF=FFFE0000)");
  // Sums of products of brain floats: to nearest even, NaNs quiet.
  check_corners(half_mask, false, R"(
      v_dot2_bf16_bf16 3F80,3F80,3B80=3F80 3F81,3F80,3B80=3F82 3F803F80,40403F80,3F80=40A0 0,0,7F81=7FC1
      v_dot2_f16_f16 40003C00,42003C00,3C00=4800)");
}

TEST_CASE("simulator corners: clamped integers stop at their limits", "[simulator][corners]") {
  check_corners(word_mask, true, R"(
      v_subrev_nc_u32 5,3=0 3,5=2
      v_sub_nc_u32 3,5=0 5,3=2
      v_add_nc_u32 FFFFFFFF,1=FFFFFFFF FFFFFFFE,1=FFFFFFFF 7,0=7)");
  check_corners(half_mask, true, R"(
      v_add_nc_u16 FFFE,1=FFFF FFFF,2=FFFF 1234,1=1235
      v_sub_nc_u16 1,2=0 2,1=1
      v_add_nc_i16 7FFF,1=7FFF 8000,FFFF=8000 7FFF,FFFF=7FFE
      v_sub_nc_i16 8000,1=8000 7FFF,FFFF=7FFF 8000,FFFF=8001)");
  check_corners(half_mask, true, R"(
      v_mad_u16 100,100,0=FFFF FF,101,1=FFFF FF,100,5=FF05
      v_mad_i16 100,100,0=7FFF FF00,100,0=8000 FF00,7F,3=8103)");
  const auto packed = [](const char* name, U a, U b, U c, bool three) {
    Bench bench;
    bench.set_vgpr(1, a);
    bench.set_vgpr(2, b);
    bench.set_vgpr(3, c);
    INFO(name);
    REQUIRE_FALSE(bench.run(encode::vop3p(name, 8, v(1), v(2), three ? v(3) : 0, 0, 7, 0, 0, true)));
    return bench.vgpr(8, 9);
  };
  CHECK(packed("v_pk_add_u16", 0xFFFFFFFE, 0x00020001, 0, false) == 0xFFFFFFFF);
  CHECK(packed("v_pk_add_u16", 0x00010002, 0x00030004, 0, false) == 0x00040006);
  CHECK(packed("v_pk_sub_u16", 0x00010005, 0x00020003, 0, false) == 0x00000002);
  CHECK(packed("v_pk_add_i16", 0x7FFF8000, 0x0001FFFF, 0, false) == 0x7FFF8000);
  CHECK(packed("v_pk_sub_i16", 0x80007FFF, 0x0001FFFF, 0, false) == 0x80007FFF);
  CHECK(packed("v_pk_sub_i16", 0x80000005, 0xFFFF0007, 0, false) == 0x8001FFFE);
  CHECK(packed("v_pk_mad_u16", 0x010000FF, 0x01000101, 0x00000000, true) == 0xFFFFFFFF);
  CHECK(packed("v_pk_mad_u16", 0x00020003, 0x00030004, 0x00010001, true) == 0x0007000D);
  CHECK(packed("v_pk_mad_i16", 0x0100FF00, 0x01000100, 0, true) == 0x7FFF8000);
  CHECK(packed("v_pk_mad_i16", 0x0002FFFF, 0x00030004, 0x00010001, true) == 0x0007FFFD);
  // Sums of products: signed ones stop at 2^31 - 1 and -2^31, unsigned ones at 2^32 - 1.
  CHECK(packed("v_dot4_u32_u8", 0x01010101, 0x01010101, 0xFFFFFFFB, true) == 0xFFFFFFFF);
  CHECK(packed("v_dot4_u32_u8", 0x01010101, 0x01010101, 0xFFFFFFFC, true) == 0xFFFFFFFF);
  CHECK(packed("v_dot4_u32_u8", 0x01010101, 0x01010101, 0xFFFFFFFA, true) == 0xFFFFFFFE);
  CHECK(packed("v_dot8_u32_u4", 0x11111111, 0x11111111, 0xFFFFFFF8, true) == 0xFFFFFFFF);
  CHECK(packed("v_dot4_i32_iu8", 0x01010101, 0x01010101, 0x7FFFFFFD, true) == 0x7FFFFFFF);
  CHECK(packed("v_dot4_i32_iu8", 0x01010101, 0x01010101, 0x80000000, true) == 0x80000004);
}

TEST_CASE("simulator corners: sums with carry, clamped and not", "[simulator][corners]") {
  struct Row {
    const char* name;
    U a, b;
    bool carry;
    U plain, clamped;
    bool out;
  };
  const Row rows[] = {{"v_add_co_u32", 0xFFFFFFFF, 0, false, 0xFFFFFFFF, 0xFFFFFFFF, false},
                      {"v_add_co_u32", 0xFFFFFFFF, 2, false, 1, 0xFFFFFFFF, true},
                      {"v_sub_co_u32", 5, 5, false, 0, 0, false},
                      {"v_sub_co_u32", 5, 6, false, 0xFFFFFFFF, 0, true},
                      {"v_subrev_co_u32", 6, 5, false, 0xFFFFFFFF, 0, true},
                      {"v_subrev_co_u32", 5, 6, false, 1, 1, false},
                      {"v_add_co_ci_u32", 0xFFFFFFFF, 0, true, 0, 0xFFFFFFFF, true},
                      {"v_add_co_ci_u32", 0xFFFFFFFF, 0xFFFFFFFF, true, 0xFFFFFFFF, 0xFFFFFFFF, true},
                      {"v_add_co_ci_u32", 0xFFFFFFFE, 0, true, 0xFFFFFFFF, 0xFFFFFFFF, false},
                      {"v_sub_co_ci_u32", 5, 5, true, 0xFFFFFFFF, 0, true},
                      {"v_sub_co_ci_u32", 6, 5, true, 0, 0, false},
                      {"v_sub_co_ci_u32", 0, 0xFFFFFFFF, true, 0, 0, true},
                      {"v_subrev_co_ci_u32", 5, 5, true, 0xFFFFFFFF, 0, true},
                      {"v_subrev_co_ci_u32", 5, 6, true, 0, 0, false}};
  for (const Row& row : rows) {
    for (const bool clamp : {false, true}) {
      Bench bench({.wave = WaveSize::wave64});
      bench.set_vgpr(2, row.a);
      bench.set_vgpr(4, row.b);
      bench.set_sgpr64(30, row.carry ? ~W{0} : 0);
      bench.set_exec(0xFFFF0000FFFFFFFF);
      const bool takes = std::string(row.name).find("_ci_") != std::string::npos;
      std::vector<U> words = encode::vop3sd(row.name, 8, 20, v(2), v(4), takes ? 30 : 0);
      if (clamp) words[0] |= 1U << 15U;
      INFO(row.name << std::hex << " " << row.a << " " << row.b << " clamp " << clamp);
      REQUIRE_FALSE(bench.run(words));
      for (const unsigned lane : {0U, 31U, 63U}) CHECK(bench.vgpr(8, lane) == (clamp ? row.clamped : row.plain));
      CHECK(bench.vgpr(8, 32) == 0);
      CHECK(bench.wave.scalar64(20) == (row.out ? 0xFFFF0000FFFFFFFF : 0));
    }
  }
}

TEST_CASE("simulator corners: lanes are named by as many bits as there are lanes", "[simulator][corners]") {
  for (const WaveSize size : {WaveSize::wave32, WaveSize::wave64}) {
    Bench bench({.wave = size});
    const unsigned lanes = bench.wave.lanes();
    for (unsigned lane = 0; lane < lanes; ++lane) bench.vgpr(1, lane) = 100 + lane;
    bench.sgpr(2) = 37;
    bench.sgpr(3) = lanes - 1;
    bench.sgpr(4) = 2 * lanes;
    bench.sgpr(5) = 7777;
    bench.set_exec(0);
    REQUIRE_FALSE(bench.run(encode::join({encode::vop3("v_readlane_b32", 20, v(1), 2),
                                          encode::vop3("v_readlane_b32", 21, v(1), 3),
                                          encode::vop3("v_readlane_b32", 22, v(1), 4),
                                          {encode::vop1("v_readfirstlane_b32", 23, v(1))},
                                          encode::vop3("v_writelane_b32", 6, 5, 2)})));
    CHECK(bench.sgpr(20) == 100 + 37 % lanes);
    CHECK(bench.sgpr(21) == 100 + lanes - 1);
    CHECK(bench.sgpr(22) == 100);
    CHECK(bench.sgpr(23) == 100);  // no lane is on: the first
    for (unsigned lane = 0; lane < lanes; ++lane) CHECK(bench.vgpr(6, lane) == (lane == 37 % lanes ? 7777U : 0U));
  }
}

TEST_CASE("simulator corners: vector registers found by M0, to the last one", "[simulator][corners]") {
  struct Row {
    const char* name;
    U m0;
    const char* reason;
  };
  for (const Row& row : {Row{"v_movrels_b32", 61, ""},
                         {"v_movrels_b32", 62, "v_movrels_b32: v64 of 64 VGPRs"},
                         {"v_movreld_b32", 55, ""},
                         {"v_movreld_b32", 56, "v_movreld_b32: v64 of 64 VGPRs"},
                         {"v_movrelsd_b32", 55, ""},
                         {"v_movrelsd_b32", 56, "v_movrelsd_b32: v64 of 64 VGPRs"},
                         {"v_movrelsd_2_b32", 61 | 55U << 16U, ""},
                         {"v_movrelsd_2_b32", 62, "v_movrelsd_2_b32: v64 of 64 VGPRs"},
                         {"v_movrelsd_2_b32", 57U << 16U, "v_movrelsd_2_b32: v65 of 64 VGPRs"},
                         {"v_swaprel_b32", 61 | 55U << 16U, ""}}) {
    Bench bench;
    bench.sgpr(operand::m0) = row.m0;
    INFO(row.name << " " << row.m0);
    const auto fault = bench.run({encode::vop1(row.name, 8, v(2))});
    CHECK((fault ? fault->reason : std::string()) == row.reason);
  }
}

TEST_CASE("simulator corners: what a step of a division scales", "[simulator][corners]") {
  struct Row {
    U value, denominator, numerator, out;
    bool undo;
  };
  constexpr U one = 0x3F800000;
  const Row rows[] = {{one, one, one, one, false},
                      {one, 0, one, 0x7FC00000, false},
                      {one, one, 0x80000000, 0x7FC00000, false},
                      {one, one, 0x6F800000, 0x5F800000, true},         // 2^96: the denominator by 2^64
                      {0x6F800000, one, 0x6F800000, 0x6F800000, true},  // and the numerator as it is
                      {one, one, 0x6F000000, one, false},               // 2^95
                      {0x00400000, 0x00400000, one, 0x20000000, true},  // a denormal denominator, far apart
                      {0x00400000, 0x00400000, 0x00800000, 0x20000000, false},
                      {0x7F000000, 0x7F000000, 0x7F000000, 0x5F000000, false},  // 2^127
                      {0x7E800001, 0x7E800001, 0x7E800001, 0x5E800001, false},  // above 2^126: 1 / d is denormal
                      {0x7E800000, 0x7E800000, 0x7E800000, 0x7E800000, false},
                      {0x3F800000, 0x7F000000, 0x3F800000, 0x3F800000, true},  // and the quotient is too
                      {0x7F000000, 0x7F000000, 0x3F800000, 0x5F000000, true},
                      {0x20000000, 0x5F800000, 0x20000000, 0x40000000, true},  // 2^-63 / 2^64 = 2^-127
                      {0x5F800000, 0x5F800000, 0x20000000, 0x5F800000, true},
                      {0x20800000, 0x5F800000, 0x20800000, 0x20800000, false},  // 2^-126
                      {0x0B800000, 0x0B800000, 0x0B800000, 0x2B800000, false},  // exponent 23 is small
                      {0x0C000000, 0x0C000000, 0x0C000000, 0x0C000000, false}};
  for (const Row& row : rows) {
    Bench bench;
    bench.set_vgpr(2, row.value);
    bench.set_vgpr(4, row.denominator);
    bench.set_vgpr(6, row.numerator);
    bench.set_exec(0xFF);
    INFO(std::hex << row.value << " " << row.denominator << " " << row.numerator);
    REQUIRE_FALSE(bench.run(encode::vop3sd("v_div_scale_f32", 8, 20, v(2), v(4), v(6))));
    CHECK(bench.vgpr(8, 5) == row.out);
    CHECK(bench.vgpr(8, 8) == 0);
    CHECK(bench.sgpr(20) == (row.undo ? 0xFFU : 0U));
  }
}

}  // namespace kiln::simulator::test
