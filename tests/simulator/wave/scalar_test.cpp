// Scalar instructions: arithmetic and SCC, EXEC, branches and calls, loads.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <utility>

#include "tests/simulator/wave/bench.hpp"

namespace kiln::simulator::test {
namespace {

using U = std::uint32_t;
using I = std::int32_t;
using W = std::uint64_t;

struct Result {
  W value;
  bool scc;
};
struct Case {
  const char* name;
  bool wide;  // 64-bit sources and result; the second source of a shift counts in its low word
  std::function<Result(W, W, bool)> expected;
};

Result of(W value) { return {value, value != 0}; }
Result word(U value) { return of(value); }

}  // namespace

TEST_CASE("simulator SALU: two sources on random numbers", "[simulator][wave]") {
  const Case cases[] = {
      {"s_add_u32", false,
       [](W a, W b, bool) {
         return Result{static_cast<U>(a + b), a + b > 0xFFFFFFFF};
       }},
      {"s_sub_u32", false,
       [](W a, W b, bool) {
         return Result{static_cast<U>(a - b), a < b};
       }},
      {"s_add_i32", false,
       [](W a, W b, bool) {
         const std::int64_t sum = std::int64_t{static_cast<I>(a)} + static_cast<I>(b);
         return Result{static_cast<U>(sum), sum != static_cast<I>(sum)};
       }},
      {"s_sub_i32", false,
       [](W a, W b, bool) {
         const std::int64_t rest = std::int64_t{static_cast<I>(a)} - static_cast<I>(b);
         return Result{static_cast<U>(rest), rest != static_cast<I>(rest)};
       }},
      {"s_addc_u32", false,
       [](W a, W b, bool c) {
         return Result{static_cast<U>(a + b + c), a + b + c > 0xFFFFFFFF};
       }},
      {"s_subb_u32", false,
       [](W a, W b, bool c) {
         return Result{static_cast<U>(a - b - c), a < b + c};
       }},
      {"s_lshl_b32", false, [](W a, W b, bool) { return word(static_cast<U>(a) << b % 32); }},
      {"s_lshr_b64", true, [](W a, W b, bool) { return of(a >> b % 64); }},
      {"s_ashr_i64", true, [](W a, W b, bool) { return of(static_cast<W>(static_cast<std::int64_t>(a) >> b % 64)); }},
      {"s_ashr_i32", false, [](W a, W b, bool) { return word(static_cast<U>(static_cast<I>(a) >> b % 32)); }},
      {"s_min_i32", false,
       [](W a, W b, bool) {
         const bool less = static_cast<I>(a) < static_cast<I>(b);
         return Result{less ? a : b, less};
       }},
      {"s_max_u32", false,
       [](W a, W b, bool) {
         return Result{a > b ? a : b, a > b};
       }},
      {"s_min_u32", false,
       [](W a, W b, bool) {
         return Result{a < b ? a : b, a < b};
       }},
      {"s_max_i32", false,
       [](W a, W b, bool) {
         const bool more = static_cast<I>(a) > static_cast<I>(b);
         return Result{more ? a : b, more};
       }},
      {"s_lshr_b32", false, [](W a, W b, bool) { return word(static_cast<U>(a) >> b % 32); }},
      {"s_lshl_b64", true, [](W a, W b, bool) { return of(a << b % 64); }},
      {"s_lshl1_add_u32", false,
       [](W a, W b, bool) {
         return Result{static_cast<U>(a * 2 + b), a * 2 + b > 0xFFFFFFFF};
       }},
      {"s_lshl2_add_u32", false,
       [](W a, W b, bool) {
         return Result{static_cast<U>(a * 4 + b), a * 4 + b > 0xFFFFFFFF};
       }},
      {"s_lshl4_add_u32", false,
       [](W a, W b, bool) {
         return Result{static_cast<U>(a * 16 + b), a * 16 + b > 0xFFFFFFFF};
       }},
      {"s_and_b32", false, [](W a, W b, bool) { return word(static_cast<U>(a & b)); }},
      {"s_or_b32", false, [](W a, W b, bool) { return word(static_cast<U>(a | b)); }},
      {"s_xor_b32", false, [](W a, W b, bool) { return word(static_cast<U>(a ^ b)); }},
      {"s_nand_b32", false, [](W a, W b, bool) { return word(static_cast<U>(~(a & b))); }},
      {"s_nor_b32", false, [](W a, W b, bool) { return word(static_cast<U>(~(a | b))); }},
      {"s_and_not1_b32", false, [](W a, W b, bool) { return word(static_cast<U>(a & ~b)); }},
      {"s_or_b64", true, [](W a, W b, bool) { return of(a | b); }},
      {"s_xor_b64", true, [](W a, W b, bool) { return of(a ^ b); }},
      {"s_nor_b64", true, [](W a, W b, bool) { return of(~(a | b)); }},
      {"s_xnor_b64", true, [](W a, W b, bool) { return of(~(a ^ b)); }},
      {"s_or_not1_b64", true, [](W a, W b, bool) { return of(a | ~b); }},
      {"s_bfe_i32", false,
       [](W a, W b, bool) {
         const unsigned at = b % 32, width = std::min<unsigned>(b >> 16 & 0x7F, 32 - at);
         return word(width == 0 ? 0 : static_cast<U>(static_cast<I>(static_cast<U>(a) << (32 - at - width)) >> (32 - width)));
       }},
      {"s_bfe_u64", true,
       [](W a, W b, bool) {
         const unsigned at = b % 64, width = std::min<unsigned>(b >> 16 & 0x7F, 64 - at);
         return of(width == 0 ? 0 : a << (64 - at - width) >> (64 - width));
       }},
      {"s_bfe_i64", true,
       [](W a, W b, bool) {
         const unsigned at = b % 64, width = std::min<unsigned>(b >> 16 & 0x7F, 64 - at);
         return of(width == 0 ? 0 : static_cast<W>(static_cast<std::int64_t>(a << (64 - at - width)) >> (64 - width)));
       }},
      {"s_bfm_b32", false,
       [](W a, W b, bool c) {
         return Result{static_cast<U>(((W{1} << a % 32) - 1) << b % 32), c};
       }},
      {"s_bfm_b64", true,
       [](W a, W b, bool c) {
         return Result{((W{1} << a % 64) - 1) << b % 64, c};
       }},
      {"s_pack_ll_b32_b16", false,
       [](W a, W b, bool c) {
         return Result{(a & 0xFFFF) | (b & 0xFFFF) << 16, c};
       }},
      {"s_pack_hh_b32_b16", false,
       [](W a, W b, bool c) {
         return Result{a >> 16 | (b & 0xFFFF0000), c};
       }},
      {"s_pack_hl_b32_b16", false,
       [](W a, W b, bool c) {
         return Result{a >> 16 | (b & 0xFFFF) << 16, c};
       }},
      {"s_and_b64", true, [](W a, W b, bool) { return of(a & b); }},
      {"s_nand_b64", true, [](W a, W b, bool) { return of(~(a & b)); }},
      {"s_xnor_b32", false, [](W a, W b, bool) { return word(~static_cast<U>(a ^ b)); }},
      {"s_and_not1_b64", true, [](W a, W b, bool) { return of(a & ~b); }},
      {"s_or_not1_b32", false, [](W a, W b, bool) { return word(static_cast<U>(a | ~b)); }},
      {"s_mul_i32", false,
       [](W a, W b, bool c) {
         return Result{static_cast<U>(a * b), c};
       }},
      {"s_mul_hi_u32", false,
       [](W a, W b, bool c) {
         return Result{a * b >> 32, c};
       }},
      {"s_mul_hi_i32", false,
       [](W a, W b, bool c) {
         return Result{static_cast<U>(static_cast<W>(std::int64_t{static_cast<I>(a)} * static_cast<I>(b)) >> 32), c};
       }},
      {"s_lshl3_add_u32", false,
       [](W a, W b, bool) {
         return Result{static_cast<U>(a * 8 + b), a * 8 + b > 0xFFFFFFFF};
       }},
      {"s_cselect_b32", false,
       [](W a, W b, bool c) {
         return Result{c ? a : b, c};
       }},
      {"s_cselect_b64", true,
       [](W a, W b, bool c) {
         return Result{c ? a : b, c};
       }},
      {"s_bfe_u32", false,
       [](W a, W b, bool) {
         const unsigned at = b % 32, width = b >> 16 & 0x7F;
         return of(width == 0 ? 0 : width >= 32 ? a >> at : (a >> at) & ((W{1} << width) - 1));
       }},
      {"s_pack_lh_b32_b16", false,
       [](W a, W b, bool c) {
         return Result{(a & 0xFFFF) | (b & 0xFFFF0000), c};
       }},
      {"s_absdiff_i32", false,
       [](W a, W b, bool) {
         const std::int64_t gap = std::int64_t{static_cast<I>(a)} - static_cast<I>(b);
         return word(static_cast<U>(gap < 0 ? -gap : gap));
       }},
  };
  std::mt19937_64 generator(1);
  for (const Case& c : cases) {
    for (unsigned round = 0; round < 60; ++round) {
      Bench bench;
      const W a = generator() >> (c.wide ? 0 : 32), b = generator() >> (c.wide ? 0 : 32);
      bench.set_sgpr64(2, a);
      bench.set_sgpr64(4, b);
      bench.wave.scc = round % 2 != 0;
      REQUIRE_FALSE(bench.run({encode::sop2(c.name, 6, 2, 4)}));
      const Result expected = c.expected(a, b, round % 2 != 0);
      INFO(c.name << std::hex << " " << a << " " << b);
      CHECK((c.wide ? bench.wave.scalar64(6) : bench.sgpr(6)) == expected.value);
      CHECK(bench.wave.scc == expected.scc);
    }
  }
}

TEST_CASE("simulator SALU: one source", "[simulator][wave]") {
  const auto after = [](const char* name, W in, bool wide_result) {
    Bench bench;
    bench.set_sgpr64(2, in);
    REQUIRE_FALSE(bench.run({encode::sop1(name, 6, 2)}));
    return wide_result ? bench.wave.scalar64(6) : bench.sgpr(6);
  };
  CHECK(after("s_brev_b32", 0x80000001, false) == 0x80000001);
  CHECK(after("s_brev_b64", 1, true) == W{1} << 63);
  CHECK(after("s_ctz_i32_b64", W{1} << 40, false) == 40);
  CHECK(after("s_clz_i32_u32", 0, false) == 0xFFFFFFFF);
  CHECK(after("s_cls_i32", 0xFFFFFF00, false) == 24);
  CHECK(after("s_sext_i32_i8", 0x80, false) == 0xFFFFFF80);
  CHECK(after("s_bcnt1_i32_b64", 0xF0F0F0F0F0, false) == 20);
  CHECK(after("s_quadmask_b32", 0x00F00102, false) == 0x25);
  CHECK(after("s_wqm_b32", 0x00F00102, false) == 0x00F00F0F);
  CHECK(after("s_bitreplicate_b64_b32", 5, true) == 0x33);
  CHECK(after("s_abs_i32", 0xFFFFFFFE, false) == 2);
  CHECK(after("s_not_b64", 1, true) == ~W{1});
  CHECK(after("s_not_b32", 1, false) == ~1U);
  CHECK(after("s_ctz_i32_b32", 0x1000, false) == 12);
  CHECK(after("s_ctz_i32_b32", 0, false) == ~0U);
  CHECK(after("s_clz_i32_u64", W{1} << 40, false) == 23);
  CHECK(after("s_cls_i32_i64", ~W{0} << 30, false) == 34);
  CHECK(after("s_cls_i32_i64", ~W{0}, false) == ~0U);
  CHECK(after("s_sext_i32_i16", 0x8001, false) == 0xFFFF8001);
  CHECK(after("s_bcnt0_i32_b32", 0xFF, false) == 24);
  CHECK(after("s_bcnt0_i32_b64", 0xFF, false) == 56);
  CHECK(after("s_bcnt1_i32_b32", 0xF0F, false) == 8);
  CHECK(after("s_quadmask_b64", 0xF000'0000'0000'0102, true) == 0x8005);
  CHECK(after("s_wqm_b64", 0x1000'0000'0000'0102, true) == 0xF000'0000'0000'0F0F);
  Bench bench;
  bench.set_sgpr64(2, 0x1111'2222'3333'4444);
  bench.set_sgpr64(4, ~W{0});
  bench.set_sgpr64(6, 0);
  bench.sgpr(8) = 37;
  // A move that waits for SCC, and single bits.
  REQUIRE_FALSE(bench.run(
      {encode::sopc("s_cmp_eq_u32", 128, 129), encode::sop1("s_cmov_b32", 10, 2), encode::sop1("s_cmov_b64", 12, 2),
       encode::sopc("s_cmp_eq_u32", 128, 128), encode::sop1("s_cmov_b32", 11, 2), encode::sop1("s_cmov_b64", 14, 2),
       encode::sop1("s_bitset1_b32", 6, 8), encode::sop1("s_bitset0_b32", 4, 8), encode::sop1("s_mov_b64", 16, 6),
       encode::sop1("s_mov_b64", 18, 4), encode::sop1("s_bitset1_b64", 6, 8), encode::sop1("s_bitset0_b64", 4, 8)}));
  CHECK(bench.sgpr(10) == 0);
  CHECK(bench.wave.scalar64(12) == 0);
  CHECK(bench.sgpr(11) == 0x33334444);
  CHECK(bench.wave.scalar64(14) == 0x1111'2222'3333'4444);
  CHECK(bench.wave.scalar64(16) == W{1} << 5);
  CHECK(bench.wave.scalar64(18) == ~(W{1} << 5));
  CHECK(bench.wave.scalar64(6) == (W{1} << 5 | W{1} << 37));
  CHECK(bench.wave.scalar64(4) == ~(W{1} << 5 | W{1} << 37));
}

TEST_CASE("simulator SALU: EXEC saved and changed, for both wave sizes", "[simulator][wave]") {
  Bench narrow;
  narrow.set_exec(0xFF00FF00);
  narrow.sgpr(2) = 0x0FF00FF0;
  REQUIRE_FALSE(narrow.run({encode::sop1("s_and_saveexec_b32", 6, 2)}));
  CHECK(narrow.sgpr(6) == 0xFF00FF00);
  CHECK(narrow.exec() == 0x0F000F00);
  CHECK(narrow.wave.scc);

  Bench wide({Generation::gfx11, WaveSize::wave64, VectorChoice::best});
  wide.set_exec(0xFFFF0000FFFF0000);
  wide.set_sgpr64(2, 0xFFFF0000FFFF0000);
  REQUIRE_FALSE(wide.run({encode::sop1("s_and_not0_saveexec_b64", 6, 2), encode::sop1("s_or_saveexec_b64", 8, 6)}));
  CHECK(wide.wave.scalar64(6) == 0xFFFF0000FFFF0000);
  CHECK(wide.wave.scalar64(8) == 0);
  CHECK(wide.exec() == 0xFFFF0000FFFF0000);
}

TEST_CASE("simulator SALU: every way to save and change EXEC", "[simulator][wave]") {
  struct Way {
    std::string name;
    bool saves;
    std::function<W(W, W)> after;  // of the source and EXEC
  };
  const Way ways[] = {
      {"s_and_saveexec", true, [](W s, W e) { return s & e; }},
      {"s_or_saveexec", true, [](W s, W e) { return s | e; }},
      {"s_xor_saveexec", true, [](W s, W e) { return s ^ e; }},
      {"s_nand_saveexec", true, [](W s, W e) { return ~(s & e); }},
      {"s_nor_saveexec", true, [](W s, W e) { return ~(s | e); }},
      {"s_xnor_saveexec", true, [](W s, W e) { return ~(s ^ e); }},
      {"s_and_not0_saveexec", true, [](W s, W e) { return ~s & e; }},
      {"s_or_not0_saveexec", true, [](W s, W e) { return ~s | e; }},
      {"s_and_not1_saveexec", true, [](W s, W e) { return s & ~e; }},
      {"s_or_not1_saveexec", true, [](W s, W e) { return s | ~e; }},
      {"s_and_not0_wrexec", false, [](W s, W e) { return ~s & e; }},
      {"s_and_not1_wrexec", false, [](W s, W e) { return s & ~e; }},
  };
  std::mt19937_64 generator(5);
  for (const Way& way : ways) {
    for (const WaveSize size : {WaveSize::wave32, WaveSize::wave64}) {
      const bool narrow = size == WaveSize::wave32;
      const W mask = narrow ? 0xFFFFFFFF : ~W{0};
      Bench bench({.wave = size});
      const W source = generator() & mask, exec = generator() & mask;
      bench.set_sgpr64(2, source);
      bench.set_exec(exec);
      const std::string name = way.name + (narrow ? "_b32" : "_b64");
      INFO(name);
      REQUIRE_FALSE(bench.run({encode::sop1(name.c_str(), 6, 2)}));
      const W expected = way.after(source, exec) & mask;
      CHECK(bench.exec() == expected);
      CHECK((bench.wave.scalar64(6) & mask) == (way.saves ? exec : expected));
      CHECK(bench.wave.scc == (expected != 0));
    }
  }
}

TEST_CASE("simulator SALU: condition codes as sources, for both wave sizes", "[simulator][wave]") {
  constexpr W high = W{1} << 40;
  for (const WaveSize size : {WaveSize::wave32, WaveSize::wave64}) {
    const W mask = size == WaveSize::wave32 ? 0xFFFFFFFF : ~W{0};
    for (const W exec : {W{0}, W{1}, high}) {
      for (const W vcc : {W{0}, W{1}, high}) {
        for (const bool scc : {false, true}) {
          Bench bench({.wave = size});
          bench.set_exec(exec & mask);
          bench.set_sgpr64(operand::vcc_lo, vcc);  // wave32 looks at the low word alone
          bench.wave.scc = scc;
          REQUIRE_FALSE(
              bench.run({encode::sop1("s_mov_b32", 6, operand::vccz), encode::sop1("s_mov_b32", 7, operand::execz),
                         encode::sop1("s_mov_b32", 8, operand::scc)}));
          INFO(std::hex << "exec " << (exec & mask) << " vcc " << vcc << " scc " << scc);
          CHECK(bench.sgpr(6) == ((vcc & mask) == 0 ? 1U : 0U));
          CHECK(bench.sgpr(7) == ((exec & mask) == 0 ? 1U : 0U));
          CHECK(bench.sgpr(8) == (scc ? 1U : 0U));
        }
      }
    }
  }
}

TEST_CASE("simulator SALU: branches, calls and immediates", "[simulator][wave]") {
  Bench bench;
  // A loop of ten rounds; a call over an instruction and back; a branch past what must not run.
  REQUIRE_FALSE(bench.run({
      encode::sopk("s_movk_i32", 2, 10),
      encode::sopk("s_movk_i32", 3, 0),
      encode::sop2("s_add_u32", 3, 3, 2),
      encode::sopk("s_addk_i32", 2, -1),
      encode::sopc("s_cmp_lg_u32", 2, 128),
      encode::sopp("s_cbranch_scc1", -4),
      encode::sopk("s_call_b64", 8, 3),  // to the s_add below
      encode::sopk("s_mulk_i32", 3, 100),
      encode::sopp("s_branch", 3),  // to the end
      encode::sopk("s_movk_i32", 3, 1),
      encode::sop2("s_add_u32", 3, 3, 129),  // one more
      encode::sop1("s_setpc_b64", 0, 8),
  }));
  CHECK(bench.sgpr(3) == 5600);
  CHECK(bench.sgpr(2) == 0);
  CHECK(bench.wave.instructions > 40);

  Bench vcc;
  vcc.sgpr(operand::vcc_hi) = 1;  // wave32 looks at the low word alone
  REQUIRE_FALSE(vcc.run(
      {encode::sopp("s_cbranch_vccz", 1), encode::sopk("s_movk_i32", 3, 7), encode::sopk("s_cmovk_i32", 4, 5)}));
  CHECK(vcc.sgpr(3) == 0);
  CHECK(vcc.sgpr(4) == 0);
}

TEST_CASE("simulator: a program that never ends is left by its share", "[simulator][wave]") {
  Bench bench;
  const std::optional<Fault> fault = bench.run({encode::sopp("s_branch", -1)});
  REQUIRE(fault);
  CHECK(fault->kind == FaultKind::watchdog);
}

TEST_CASE("simulator SMEM: loads by address and by descriptor", "[simulator][wave]") {
  Bench bench;
  std::vector<U> data(2048);
  for (unsigned i = 0; i < data.size(); ++i) data[i] = 1000 + i;
  const W address = bench.memory.allocate(data);
  bench.set_sgpr64(2, address);
  bench.sgpr(4) = 16;
  // A buffer of 24 bytes.
  bench.set_sgpr64(8, address + 64);
  bench.sgpr(10) = 24;
  bench.sgpr(11) = 3U << 28;
  REQUIRE_FALSE(bench.run(
      encode::join({encode::smem("s_load_b64", 20, 2, 8), encode::smem("s_load_b128", 24, 2, 4, 4),
                    encode::smem("s_load_b512", 32, 2, 4096 - 32), encode::smem("s_buffer_load_b128", 52, 8, 12)})));
  CHECK(bench.sgpr(20) == 1002);
  CHECK(bench.sgpr(21) == 1003);
  CHECK(bench.sgpr(24) == 1005);
  for (unsigned i = 0; i < 16; ++i) CHECK(bench.sgpr(32 + i) == 1000 + 1016 + i);
  CHECK(bench.sgpr(52) == 1019);
  CHECK(bench.sgpr(54) == 1021);
  CHECK(bench.sgpr(55) == 0);

  bench.set_sgpr64(2, 0x123000);
  const std::optional<Fault> fault = bench.run(encode::smem("s_load_b32", 20, 2, 0));
  REQUIRE(fault);
  CHECK(fault->kind == FaultKind::unmapped);
  CHECK(fault->address == 0x123000);
  CHECK(fault->reason.find("s_load_b32") != std::string::npos);
}

TEST_CASE("simulator SALU: moves by M0 take constants and any scalar register beside what M0 leads to", "[simulator][wave]") {
  constexpr unsigned m0 = 125, vcc = 106, five = 133;
  Bench bench;
  bench.set_sgpr64(8, 0x1122334455667788);
  bench.set_sgpr64(vcc, 0xAAAABBBBCCCCDDDD);
  const auto fault = bench.run({encode::sop1("s_mov_b32", m0, 132),       // 4
                                encode::sop1("s_movreld_b32", 20, five),  // s24
                                encode::sop1("s_movreld_b64", 24, vcc),   // s[28:29]
                                encode::sop1("s_movrels_b32", vcc, 4),    // s8
                                encode::sop1("s_movrels_b64", 30, 4)});   // s[8:9]
  INFO((fault ? fault->reason : std::string()));
  REQUIRE_FALSE(fault);
  CHECK(bench.sgpr(24) == 5);
  CHECK(bench.wave.scalar64(28) == 0xAAAABBBBCCCCDDDD);
  CHECK(bench.sgpr(vcc) == 0x55667788);
  CHECK(bench.wave.scalar64(30) == 0x1122334455667788);
  const auto beyond = bench.run({encode::sop1("s_mov_b32", m0, 132), encode::sop1("s_movreld_b32", 102, five)});
  REQUIRE(beyond);
  CHECK(beyond->reason.find("M0 leads to s106 of 106 SGPRs") != std::string::npos);
}

TEST_CASE("simulator SMEM: a load of every width writes its registers and no other", "[simulator][wave]") {
  constexpr U before = 0xBAD, first = 32;
  for (const bool buffer : {false, true}) {
    for (const unsigned words : {1U, 2U, 4U, 8U, 16U}) {
      Bench bench;
      std::vector<U> data(64);
      for (U i = 0; i < data.size(); ++i) data[i] = 1000 + i;
      const W address = bench.memory.allocate(data);
      bench.set_sgpr64(2, address);
      bench.set_buffer(8, address, 0, 256, encode::raw_buffer);
      for (unsigned i = 20; i < 60; ++i) bench.sgpr(i) = before;
      const std::string name = (buffer ? "s_buffer_load_b" : "s_load_b") + std::to_string(32 * words);
      INFO(name);
      REQUIRE_FALSE(bench.run(encode::smem(name.c_str(), first, buffer ? 8U : 2U, 12)));
      for (unsigned i = 20; i < 60; ++i) {
        INFO("s" << i);
        CHECK(bench.sgpr(i) == (i >= first && i < first + words ? 1003 + i - first : before));
      }
    }
  }
}

TEST_CASE("simulator SMEM: a load into a group that ends in VCC writes VCC", "[simulator][wave]") {
  for (const auto& [name, first] : {std::pair{"s_load_b128", 104U}, {"s_load_b256", 100U}, {"s_load_b512", 92U}}) {
    Bench bench;
    std::vector<U> words(16);
    for (U i = 0; i < 16; ++i) words[i] = 0x1000 + i;
    bench.set_sgpr64(2, bench.memory.allocate(words));
    bench.sgpr(first - 1) = 5;
    REQUIRE_FALSE(bench.run(encode::join({encode::smem(name, first, 2, 0), {encode::sop1("s_mov_b64", 4, 106)}})));
    INFO(name);
    CHECK(bench.sgpr(first - 1) == 5);
    for (unsigned i = first; i < 108; ++i) CHECK(bench.sgpr(i) == 0x1000 + i - first);
    CHECK(bench.sgpr(5) == 0x1000 + 107 - first);
    CHECK(bench.sgpr(108) == 0);
  }
  Bench bench;  // a descriptor there
  bench.set_sgpr64(104, bench.memory.allocate(std::vector<U>{7, 8, 9, 10}));
  bench.sgpr(106) = 12;
  bench.sgpr(107) = 3U << 28;
  REQUIRE_FALSE(bench.run(encode::smem("s_buffer_load_b128", 8, 104, 0)));
  CHECK(bench.sgpr(10) == 9);
  CHECK(bench.sgpr(11) == 0);  // behind its 12 bytes
}

TEST_CASE("simulator SALU: messages that are answered", "[simulator][wave]") {
  Bench bench;
  REQUIRE_FALSE(bench.run({encode::sop1("s_sendmsg_rtn_b64", 2, 131), encode::sop1("s_sendmsg_rtn_b32", 4, 131),
                           encode::sop1("s_sendmsg_rtn_b64", 6, 131), encode::sop1("s_sendmsg_rtn_b64", 8, 133)}));
  const W first = bench.wave.scalar64(2), last = bench.wave.scalar64(6);
  CHECK(first != 0);
  CHECK(last >= first);
  CHECK(bench.sgpr(4) - static_cast<U>(first) <= static_cast<U>(last - first));
  CHECK(bench.wave.scalar64(8) == 0);
  const std::pair<unsigned, std::string> refused[] = {{0U, "0"},
                                                      {128U, "128 (MSG_RTN_GET_DOORBELL)"},
                                                      {129U, "129 (MSG_RTN_GET_DDID)"},
                                                      {132U, "132 (MSG_RTN_SAVE_WAVE)"},
                                                      {134U, "134 (MSG_RTN_GET_TBA_TO_PC)"}};
  for (const auto& [message, named] : refused) {
    const auto fault = bench.run({encode::sop1("s_sendmsg_rtn_b32", 2, message)});
    REQUIRE(fault);
    CHECK(fault->reason == "s_sendmsg_rtn_b32: message " + named + " is not simulated");
  }
}

TEST_CASE("simulator SALU: loops over the halves of a wave", "[simulator][wave]") {
  // begin s4, past the loop · s_add_u32 s6, s6, exec_lo · s_add_u32 s7, s7, exec_hi · s_add_u32 s8, s8, 1 · end s4
  const std::vector<U> loop = {encode::sopk("s_subvector_loop_begin", 4, 4), encode::sop2("s_add_u32", 6, 6, 126),
                               encode::sop2("s_add_u32", 7, 7, 127), encode::sop2("s_add_u32", 8, 8, 129),
                               encode::sopk("s_subvector_loop_end", 4, -4)};
  for (const auto& [low, high] : {std::pair{5U, 9U}, {5U, 0U}, {0U, 9U}, {0U, 0U}}) {
    INFO(low << " " << high);
    Bench bench({.wave = WaveSize::wave64});
    bench.set_exec(low | static_cast<W>(high) << 32U);
    REQUIRE_FALSE(bench.run(loop));
    CHECK(bench.exec() == (low | static_cast<W>(high) << 32U));
    CHECK(bench.sgpr(6) == low);
    CHECK(bench.sgpr(7) == high);
    CHECK(bench.sgpr(8) == (low != 0 ? 1U : 0U) + (high != 0 ? 1U : 0U));
  }
  Bench bench;
  CHECK(bench.run(loop)->reason.find("wave of 32 lanes") != std::string::npos);
}

}  // namespace kiln::simulator::test
