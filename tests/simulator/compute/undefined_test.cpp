// Planted hazards: a store of what nothing has written, and what only looks like one.
#include <catch2/catch.hpp>
#include <random>

#include "simulator/wave/check/undefined_rules.hpp"
#include "tests/simulator/compute/planted.hpp"

namespace kiln::simulator::test {

using namespace planted;

TEST_CASE("simulator hazards: what nothing has written reaches a store", "[simulator][hazards]") {
  // v20 to v23 and s40 have not been written; v24 to v27 are.
  const Words defined = {vop1("v_mov_b32", 24, 128), vop1("v_mov_b32", 25, 128), vop1("v_mov_b32", 26, 128),
                         vop1("v_mov_b32", 27, 128)};
  const Words done = {wait(0, 0)};
  struct Case {
    const char* name;
    Words words;
    bool undefined;
  };
  const auto store = [](unsigned data) { return global("global_store_b32", 0, 2, data); };
  const auto vop3 = [](const char* name, unsigned dst, unsigned a, unsigned b, unsigned c = 0) {
    return encode::vop3(name, dst, a, b, c);
  };
  constexpr unsigned s40 = 40, one = 129, sixteen = 144, twenty_four = 152;
  // v24: one byte that is written below three that are not; and what leaves that byte written.
  const Words byte = join({{vop1("v_mov_b32", 25, 255), 0xFF}, vop3("v_bfi_b32", 24, v(25), v(0), v(20))});
  const Words sums = join({vop3("v_add_nc_u16", 24, v(24), v(24)), vop3("v_mul_lo_u16", 24, v(24), v(24)),
                           vop3("v_sub_nc_u16", 24, 128, v(24)), vop3("v_lshlrev_b16", 24, one, v(24))});
  // The same with a bit of the byte set.
  const Words ten = join({{vop1("v_mov_b32", 25, 255), 0xFF, vop1("v_mov_b32", 24, 138)},  //
                          vop3("v_bfi_b32", 24, v(25), v(24), v(20))});
  // v20 to v22 are written and v23 is not; of v[24:25] all but the last half, as vectors of three have it.
  const Words three = {vop1("v_mov_b32", 20, 128), vop1("v_mov_b32", 21, 128), vop1("v_mov_b32", 22, 128)};
  const Words halves = join({{vop1("v_mov_b32", 24, 255), 0xFFFF}, vop3("v_bfi_b32", 25, v(24), v(0), v(20))});
  // `source` times v0 plus v0. Sources with a bit in `narrow` are halves, those with one in `high` the upper ones.
  const auto mixed = [](const char* name, unsigned dst, unsigned source, unsigned high = 0, unsigned narrow = 7) {
    return encode::vop3p(name, dst, source, v(0), v(0), high, narrow);
  };
  // v[24:25] = v0 * v0 + v[20:21]
  const Words wide_sum = encode::vop3sd("v_mad_u64_u32", 24, off, v(0), v(0), v(20));
  const Words written = {vop1("v_mov_b32", 20, 128), vop1("v_mov_b32", 21, 128)};
  constexpr unsigned minus_sixteen = 208;
  const Words all_lanes = {sop1("s_mov_b32", exec_lo, minus_one)}, lanes_to_3 = {sopk("s_movk_i32", exec_lo, 0xF)},
              lanes_from_4 = {sop1("s_mov_b32", exec_lo, minus_sixteen)};
  // Of the low half of the one and the high half of the other, as ACO writes it.
  const auto exchange = [&](unsigned a, unsigned b) {
    return join({encode::vop3("v_add_nc_u16", a - v(0), a, b, 0, {.op_sel = 2}),
                 encode::vop3("v_sub_nc_u16", b - v(0), a, b, 0, {.op_sel = 10}),
                 encode::vop3("v_sub_nc_u16", a - v(0), a, b, 0, {.op_sel = 2})});
  };
  // Bytes of two registers by a selector: 0 to 3 of the second, 4 to 7 of the first, 8 to 11 signs, above constants.
  const auto permuted = [&](unsigned a, unsigned b, U selector) {
    return join({{vop1("v_mov_b32", 26, 255), selector}, vop3("v_perm_b32", 24, a, b, v(26))});
  };
  // M0: an inline constant; or 1 for sources, and 2 for destinations.
  const auto m0 = [](unsigned value) { return Words{sop1("s_mov_b32", operand::m0, value)}; };
  const Words fields = {sop1("s_mov_b32", operand::m0, encode::literal), 0x00020001};
  // A scalar operation on that byte, whose result is stored.
  const auto from_scalar = [&](const Words& words) {
    return join({{vop1("v_readfirstlane_b32", s40, v(24))}, words, {vop1("v_mov_b32", 24, s40)}, store(24)});
  };
  const std::vector<Case> cases = {
      {"a register", store(20), true},
      {"a scalar register", join({{vop1("v_mov_b32", 24, s40)}, store(24)}), true},
      {"a sum", join({{vop2("v_add_nc_u32", 24, v(20), 0)}, store(24)}), true},
      {"a float", join({{vop2("v_add_f32", 24, v(20), 24)}, store(24)}), true},
      {"a product", join({vop3("v_mul_lo_u32", 24, v(20), v(0)), store(24)}), true},
      {"a fused product", join({vop3("v_fma_f32", 24, v(0), v(0), v(20)), store(24)}), true},
      {"an accumulator", join({{vop2("v_fmac_f32", 20, v(0), 0)}, store(20)}), true},
      {"a double", join({vop3("v_add_f64", 24, v(20), v(26)), store(24)}), true},
      {"a conversion", join({{vop1("v_cvt_f32_u32", 24, v(20))}, store(24)}), true},
      {"a compare",
       join({vop3("v_cmp_eq_u32", vcc_lo, v(20), v(0)), vop3("v_cndmask_b32", 24, 128, one, vcc_lo), store(24)}), true},
      {"a packed sum", join({encode::vop3p("v_pk_add_f16", 24, v(20), v(24)), store(24)}), true},
      {"a first lane", join({{vop1("v_readfirstlane_b32", 40, v(20)), vop1("v_mov_b32", 24, 40)}, store(24)}), true},
      {"LDS", join({encode::ds("ds_load_b32", 24, 2, 0), done, store(24)}), true},
      {"LDS, a byte", join({encode::ds("ds_load_u8", 24, 2, 0), done, store(24)}), true},
      {"LDS, four words of which one was written",
       join({encode::ds("ds_store_b32", 0, 2, 8), encode::ds("ds_load_b128", 24, 2, 0), done,
             global("global_store_b128", 0, 2, 24)}),
       true},
      {"an address", global("global_store_b32", 0, 20, 8), true},
      {"half of the lanes",
       join({{sopk("s_movk_i32", exec_lo, 0xF), vop1("v_mov_b32", 20, 128), sop1("s_mov_b32", exec_lo, minus_one)},
             store(20)}),
       true},
      {"two words of four",
       join({{vop1("v_mov_b32", 20, 128), vop1("v_mov_b32", 21, 128)}, global("global_store_b128", 0, 2, 20)}), true},
      {"three words of four", join({three, global("global_store_b128", 0, 2, 20)}), false},
      {"three words of four, with a buffer",
       join({three, encode::mubuf("buffer_store_b128", 20, 2, 4, 128, 0, false, true)}), false},
      {"three words of four, elsewhere", join({three, global("global_store_b128", 0, 2, 20, 4)}), true},
      {"the last three words of four", global("global_store_b128", 0, 2, 23), true},
      {"an atomic's second word", join({{vop1("v_mov_b32", 20, 128)}, global("global_atomic_add_u64", 0, 2, 20, 8)}),
       true},
      {"the second byte of a half", join({byte, global("global_store_b16", 0, 2, 24, 2)}), true},
      {"three halves of four", join({halves, global("global_store_b64", 0, 2, 24)}), false},
      {"three halves of four, elsewhere", join({halves, global("global_store_b64", 0, 2, 24, 4)}), true},
      {"one word of two", join({{vop1("v_mov_b32", 20, 128)}, global("global_store_b64", 0, 2, 20)}), true},
      {"the last word of four alone", global("global_store_b32", 0, 2, 20, 12), true},
      {"an atomic", global("global_atomic_add_u32", 0, 2, 20), true},
      {"a buffer", encode::mubuf("buffer_store_b32", 20, 2, 4, 128, 0, false, true), true},
      {"the high half", global("global_store_d16_hi_b16", 0, 2, 20), true},
      {"a shift that keeps some", join({{vop2("v_lshrrev_b32", 24, sixteen, 20)}, store(24)}), true},

      {"no bit by conjunction", join({{vop2("v_and_b32", 24, 128, 20)}, store(24)}), false},
      {"no bit by disjunction", join({{vop2("v_or_b32", 24, minus_one, 20)}, store(24)}), false},
      {"no bit by shifts", join({{vop1("v_mov_b32", 20, 128)}, {vop2("v_lshlrev_b32", 24, sixteen, 20)}, store(24)}),
       false},
      {"the other of a selection",
       join({vop3("v_cmp_eq_u32", vcc_lo, v(0), v(0)), vop3("v_cndmask_b32", 24, v(20), v(8), vcc_lo), store(24)}),
       false},
      {"lanes that are off", join({{sopk("s_movk_i32", exec_lo, 0xF), vop1("v_mov_b32", 20, 128)}, store(20)}), false},
      {"the low half alone",
       join({global("global_load_d16_b16", 20, 2, 0), done, global("global_store_b16", 0, 2, 20)}), false},
      {"the low word of a wide sum",
       join({{vop1("v_mov_b32", 20, 128)}, encode::vop3sd("v_mad_u64_u32", 24, off, v(0), v(0), v(20)), store(24)}),
       false},
      {"two packed halves", join({{vop2("v_cvt_pk_rtz_f16_f32", 24, 128, 20)}, global("global_store_b16", 0, 2, 24)}),
       false},
      {"a mixed product of a register that is not written, before one that is",
       join({{vop1("v_mov_b32", 21, 128)}, mixed("v_fma_mix_f32", 24, v(20)), store(24)}), true},
      {"the written half, in a mixed product", join({halves, mixed("v_fma_mix_f32", 24, v(25)), store(24)}), false},
      {"the other half, in a mixed product", join({halves, mixed("v_fma_mix_f32", 24, v(25), 1), store(24)}), true},
      {"both halves as a float, in a mixed product", join({halves, mixed("v_fma_mix_f32", 24, v(25), 0, 6), store(24)}),
       true},
      {"the low half of a mixed product, which is the result",
       join({mixed("v_fma_mixlo_f16", 20, v(0)), global("global_store_b16", 0, 2, 20)}), false},
      {"the high half of it, which stays",
       join({mixed("v_fma_mixlo_f16", 20, v(0)), global("global_store_d16_hi_b16", 0, 2, 20)}), true},
      {"the high half of a mixed product, which is the result",
       join({mixed("v_fma_mixhi_f16", 20, v(0)), global("global_store_d16_hi_b16", 0, 2, 20)}), false},
      {"the low half of it, which stays",
       join({mixed("v_fma_mixhi_f16", 20, v(0)), global("global_store_b16", 0, 2, 20)}), true},
      {"the high word of a wide sum", join({{vop1("v_mov_b32", 20, 128)}, wide_sum, store(25)}), true},
      {"a carry into the high word", join({{vop1("v_mov_b32", 21, 128)}, wide_sum, store(25)}), true},
      {"the high word of a wide sum, in lanes that are written",
       join({lanes_from_4, written, all_lanes, wide_sum, lanes_from_4, store(25)}), false},
      {"the high word of a wide sum, in lanes that are not",
       join({lanes_from_4, written, all_lanes, wide_sum, lanes_to_3, store(25)}), true},
      {"the high word of a wide sum, in the first lanes",
       join({lanes_to_3, written, all_lanes, wide_sum, lanes_to_3, store(25)}), false},
      {"what LDS was given",
       join({encode::ds("ds_store_b64", 0, 2, 8), encode::ds("ds_load_b64", 20, 2, 0), done, store(20)}), false},
      {"the low byte of 16-bit sums", join({byte, sums, global("global_store_b8", 0, 2, 24)}), false},
      {"the high byte of 16-bit sums", join({byte, sums, global("global_store_b16", 0, 2, 24)}), true},
      {"the high byte of a reversal",
       join({byte, {vop1("v_bfrev_b32", 24, v(24)), vop2("v_lshrrev_b32", 24, twenty_four, 24)}, store(24)}), false},
      {"the byte below it",
       join({byte, {vop1("v_bfrev_b32", 24, v(24)), vop2("v_lshrrev_b32", 24, sixteen, 24)}, store(24)}), true},
      {"a scalar byte, extended", join({byte, from_scalar({sop1("s_sext_i32_i8", s40, s40)})}), false},
      {"a scalar half, extended", join({byte, from_scalar({sop1("s_sext_i32_i16", s40, s40)})}), true},
      {"a scalar field", join({byte, from_scalar({sop2("s_bfe_i32", s40, s40, 255), 0x80000})}), false},
      {"a scalar field of 64 bits", join({byte, from_scalar({sop2("s_bfe_i64", s40, s40, 255), 0x80000})}), false},
      {"a scalar field of the upper 32 bits", join({byte, from_scalar({sop2("s_bfe_i64", s40, s40, 255), 0x80020})}),
       true},
      {"a scalar field with a bit too many", join({byte, from_scalar({sop2("s_bfe_i32", s40, s40, 255), 0x90000})}),
       true},
      {"the first bit set, below what is undefined", join({ten, {vop1("v_ctz_i32_b32", 24, v(24))}, store(24)}), false},
      {"the first bit set, among it", join({byte, {vop1("v_ctz_i32_b32", 24, v(24))}, store(24)}), true},
      {"the last bit set, above what is undefined",
       join({ten, {vop1("v_bfrev_b32", 24, v(24)), vop1("v_clz_i32_u32", 24, v(24))}, store(24)}), false},
      {"the last bit set, among it", join({ten, {vop1("v_clz_i32_u32", 24, v(24))}, store(24)}), true},
      {"the written byte, four times", join({byte, vop3("v_perm_b32", 24, v(0), v(24), 128), store(24)}), false},
      {"a byte beside it, first", join({byte, vop3("v_perm_b32", 24, v(0), v(24), one), store(24)}), true},
      {"a byte beside it, third", join({byte, permuted(v(0), v(24), 0x00010000), store(24)}), true},
      {"a byte beside it, as a vector of three has it", join({byte, permuted(v(0), v(24), 0x01000000), store(24)}),
       false},
      {"the written byte of the first operand", join({byte, permuted(v(24), v(0), 0x04040404), store(24)}), false},
      {"a byte beside it of the first operand", join({byte, permuted(v(24), v(0), 0x04050404), store(24)}), true},
      {"the sign of an undefined half", join({byte, permuted(v(0), v(24), 0x0C080C0C), store(24)}), true},
      {"constants by permutation", join({byte, permuted(v(24), v(24), 0x0D0C0D0C), store(24)}), false},
      {"a half, after an exchange", join({exchange(v(20), v(8)), global("global_store_b16", 0, 2, 20)}), false},
      {"the other half of an exchange", join({exchange(v(20), v(8)), global("global_store_d16_hi_b16", 0, 2, 8)}),
       true},
      {"the other, exchanged back",
       join({exchange(v(20), v(8)), exchange(v(20), v(8)), global("global_store_d16_hi_b16", 0, 2, 8)}), false},
      {"a register that M0 leads to", join({m0(one), {vop1("v_movreld_b32", 19, 128)}, store(20)}), false},
      {"the register before it", join({m0(one), {vop1("v_movreld_b32", 20, 128)}, store(20)}), true},
      {"a source that M0 leads to", join({m0(132), {vop1("v_movrels_b32", 24, v(20))}, store(24)}), false},
      {"an undefined source that M0 leads to", join({m0(140), {vop1("v_movrels_b32", 24, v(8))}, store(24)}), true},
      {"source and destination by M0", join({m0(one), {vop1("v_movrelsd_b32", 19, v(7))}, store(20)}), false},
      {"by the two fields of M0", join({fields, {vop1("v_movrelsd_2_b32", 18, v(7))}, store(20)}), false},
      {"an exchange by M0", join({fields, {vop1("v_swaprel_b32", 6, v(19))}, store(20)}), false},
      {"the other of an exchange by M0", join({fields, {vop1("v_swaprel_b32", 6, v(19))}, store(8)}), true},
      {"a scalar register that M0 leads to",
       join({m0(one), {sop1("s_movreld_b32", 39, 8), vop1("v_mov_b32", 24, s40)}, store(24)}), false},
      {"an undefined scalar source that M0 leads to",
       join({m0(160), {sop1("s_movrels_b32", 41, 8), vop1("v_mov_b32", 24, 41)}, store(24)}), true},
      {"scalar logic, which may take away what is undefined",
       join({byte, from_scalar({sop2("s_and_b32", s40, s40, 255), 0xFF})}), false},
      {"scalar arithmetic", join({byte, from_scalar({sop2("s_add_u32", s40, s40, 255), 0xFF})}), true},
      {"the first of a sum that moves up", join({vop3("v_add_lshl_u32", 24, v(20), v(0), one), store(24)}), true},
      {"the second of it", join({vop3("v_add_lshl_u32", 24, v(0), v(20), one), store(24)}), true},
      {"how far it moves", join({vop3("v_add_lshl_u32", 24, v(0), v(0), v(20)), store(24)}), true},
      {"a sum that moves up", join({vop3("v_add_lshl_u32", 24, v(0), v(0), one), store(24)}), false},
      {"what is never stored", {vop2("v_add_f32", 24, v(20), 21)}, false}};
  for (const Case& each : cases) {
    INFO(each.name);
    Planted program;
    const std::optional<Fault> fault = program.run(join({defined, each.words}));
    if (fault) UNSCOPED_INFO(describe(*fault));
    CHECK(fault.has_value() == each.undefined);
    if (fault) CHECK_THAT(fault->reason, Catch::Contains("uninitialised"));
  }
}

TEST_CASE("simulator hazards: the halves of a wave exchange what is undefined", "[simulator][hazards]") {
  // v20 is written in the low half alone, so v24 is in the high half.
  const Words exchanged = {sop1("s_mov_b32", exec_hi, 128), vop1("v_mov_b32", 20, 128),
                           sop1("s_mov_b32", exec_hi, minus_one), vop1("v_permlane64_b32", 24, v(20))};
  const Words low = {sop1("s_mov_b32", exec_hi, 128)};
  const Words high = {sop1("s_mov_b32", exec_lo, 128), sop1("s_mov_b32", exec_hi, minus_one)};
  const Words store = global("global_store_b32", 0, 2, 24);
  const Shape wave64{1, true};
  Planted program;
  CHECK_FALSE(program.run(join({exchanged, high, store}), wave64));
  const std::optional<Fault> fault = program.run(join({exchanged, low, store}), wave64);
  REQUIRE(fault);
  CHECK_THAT(fault->reason, Catch::Contains("uninitialised"));
}

// The rule of each operation that has one, beside what it does: what changes when the undefined bits of its sources are
// filled at random is undefined; and no other bit, of what carries single bits.
TEST_CASE("simulator hazards: what undefined bits change is undefined", "[simulator][hazards]") {
  using undefined_bits::Rule;
  std::mt19937 generator(1);
  unsigned checked = 0;
  for (unsigned i = 1; i < static_cast<unsigned>(Opcode::count); ++i) {
    const OpcodeInfo& line = info(static_cast<Opcode>(i));
    const Rule rule = undefined_bits::rule_of(line.opcode);
    if (rule == Rule::whole || rule == Rule::select || line.gfx11 < 0) continue;
    const U kept = bits_of(line.dst) == 16 ? 0xFFFFU : ~0U;
    for (unsigned trial = 0; trial < 200; ++trial) {
      Bench bench({Generation::gfx11, WaveSize::wave64});
      U bits[3] = {}, values[3] = {}, sources[3] = {}, changed = 0;
      for (unsigned s = 0; s < 3 && line.src[s] != DataType::none; ++s) {
        sources[s] = v(2 + s);
        values[s] = generator() & kept & (rule == Rule::permute && s == 2 ? 0x0F0F0F0FU : ~0U);
        if (generator() % 2 == 0) bits[s] = generator() & generator() & (trial % 2 == 0 ? generator() : ~0U) & kept;
        for (unsigned lane = 0; lane < 64; ++lane) {
          bench.vgpr(2 + s, lane) = values[s] ^ (lane == 0 ? 0 : generator() & bits[s]);
        }
      }
      REQUIRE_FALSE(bench.run(encode::vop3(line.name.data(), 8, sources[0], sources[1], sources[2])));
      for (unsigned lane = 1; lane < 64; ++lane) changed |= (bench.vgpr(8, lane) ^ bench.vgpr(8, 0)) & kept;
      const U told = undefined_bits::applied(rule, bits, values) & kept, any = bits[0] | bits[1] | bits[2];
      INFO(line.name << std::hex << " " << bits[0] << " " << bits[1] << " " << bits[2] << " of " << values[0] << " "
                     << values[1] << " " << values[2] << ": " << changed << ", told " << told);
      CHECK((changed & ~told) == 0);
      const bool shifts = rule >= Rule::shift_left && rule <= Rule::shift_signed16;
      const bool single = rule <= Rule::disjunction || shifts || rule == Rule::permute || rule == Rule::align_bit ||
                          rule == Rule::align_byte || rule == Rule::and_or;
      if (single && (told != kept || bits[shifts ? 0 : 2] == 0)) CHECK(told == changed);
      if (rule == Rule::insert) CHECK((told & ~changed & ~bits[0]) == 0);
      if (rule == Rule::sum) CHECK((told & ((any & (0U - any)) - 1U)) == (any == 0 ? told : 0U));
      if (rule >= Rule::byte0 && told != 0) CHECK(changed != 0);
      ++checked;
    }
  }
  CHECK(checked >= 200 * 50);
}

}  // namespace kiln::simulator::test
