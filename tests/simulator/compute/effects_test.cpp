// What the checks of hazards are told of an instruction: registers, reach, and what else it does.
#include "simulator/wave/check/effects.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/simulator/compute/planted.hpp"

namespace kiln::simulator::test {
namespace {

using namespace planted;

// "< v1 s2-3 > v4 load": reads, writes, and the rest by name.
std::string effects_text(const Words& words, WaveSize wave) {
  Instruction instruction;
  const auto fault = decode({Generation::gfx11, wave}, words, 0, instruction);
  if (fault) return fault->reason;
  const Effects effects = effects_of(instruction, wave);
  std::string text = "<";
  const auto list = [&text](const std::vector<Registers>& all) {
    for (const Registers& each : all) {
      text += (each.vector ? " v" : " s") + std::to_string(each.first);
      if (each.count != 1) text += "-" + std::to_string(each.first + each.count - 1);
    }
  };
  list(effects.reads);
  text += " >";
  list(effects.writes);
  constexpr const char* reaches[] = {"", " scalar", " local", " memory", " flat"};
  constexpr const char* changes[] = {"", " add", " or", " and", " swap", " min_signed", " max_signed", " min", " max"};
  text += reaches[static_cast<unsigned>(effects.reach)];
  text += changes[static_cast<unsigned>(effects.change)];
  const std::pair<bool, const char*> flags[] = {{effects.load, " load"},         {effects.store, " store"},
                                                {effects.atomic, " atomic"},     {effects.exchange, " exchange"},
                                                {effects.vector, " vector"},     {effects.scc, " scc"},
                                                {effects.masks, " masks"},       {effects.stride64, " stride64"},
                                                {effects.relative, " relative"}, {effects.plain, " plain"}};
  for (const auto& [set, name] : flags) {
    if (set) text += name;
  }
  return text;
}

}  // namespace

TEST_CASE("simulator effects: registers, reach and kind of each instruction", "[simulator][hazards]") {
  constexpr WaveSize w32 = WaveSize::wave32, w64 = WaveSize::wave64;
  struct Row {
    WaveSize wave;
    Words words;
    const char* text;
  };
  const unsigned literal = encode::literal;
  const Row rows[] = {
      {w32, {sop2("s_add_u32", 4, 3, 133)}, "< s3 > s4 scc plain"},
      {w32, {sop1("s_mov_b32", 4, literal), 7}, "< > s4 scc plain"},
      {w32, {sop1("s_mov_b32", off, off)}, "< > scc plain"},
      // Masks tell the size where they are written whole.
      {w32, {sop1("s_mov_b64", 2, 4)}, "< s4-5 > s2-3 scc plain"},
      {w32, {sop2("s_and_b64", 2, 4, 6)}, "< s4-5 s6-7 > s2-3 scc plain"},
      {w32, {sop1("s_mov_b64", exec_lo, 4)}, "< s4-5 > s126-127 scc masks"},
      {w32, {sop2("s_and_b64", exec_lo, exec_lo, 4)}, "< s126-127 s4-5 > s126-127 scc masks"},
      {w32, {sop1("s_mov_b64", vcc_lo, 4)}, "< s4-5 > s106-107 scc plain"},
      {w32, {sop1("s_mov_b32", exec_lo, 4)}, "< s4 > s126 scc plain"},
      {w32, {sopp("s_cbranch_vccz", 1)}, "< s106 > scc plain"},
      {w64, {sop1("s_mov_b64", 2, 4)}, "< s4-5 > s2-3 scc plain"},
      {w64, {sop1("s_mov_b32", 105, 4)}, "< s4 > s105 scc plain"},
      {w64, {sop1("s_mov_b32", vcc_lo, 4)}, "< s4 > s106 scc masks"},
      {w64, {sop1("s_mov_b32", 107, 4)}, "< s4 > s107 scc masks"},
      {w64, {sop1("s_mov_b32", 108, 4)}, "< s4 > s108 scc plain"},
      {w64, {sop1("s_mov_b32", exec_lo, 4)}, "< s4 > s126 scc masks"},
      {w64, {sop1("s_mov_b32", exec_hi, 4)}, "< s4 > s127 scc masks"},
      {w64, encode::smem("s_load_b128", 104, 2, 0), "< s2-3 > s104-107 scalar load scc masks"},
      {w64, {sopp("s_cbranch_vccz", 1)}, "< s106-107 > scc masks"},
      {w64, {sopp("s_cbranch_scc1", 1)}, "< > scc plain"},
      // Waits are never plain.
      {w32, {sopp("s_nop", 1)}, "< > scc plain"},
      {w32, {sopp("s_waitcnt", 0)}, "< > scc"},
      {w32, {sopp("s_wait_idle", 0)}, "< > scc"},
      {w32, {wait_for_stores()}, "< > scc"},
      {w32, {sopk("s_movk_i32", 4, 1)}, "< > s4 scc plain"},
      {w32, {encode::sopc("s_cmp_eq_u32", 4, 5)}, "< s4 s5 > scc plain"},
      // Vector instructions.
      {w32, {vop1("v_mov_b32", 3, v(1))}, "< v1 > v3 vector plain"},
      {w32, {vop1("v_mov_b32", 3, operand::scc)}, "< > v3 vector scc plain"},
      {w32, {vop1("v_swap_b32", 3, v(1))}, "< v1 v3 > v3 v1 vector plain"},
      {w32, {vop1("v_movrels_b32", 3, v(1))}, "< v1 s125 > v3 vector relative plain"},
      {w32, {vop2("v_fmac_f32", 3, v(1), 2)}, "< v1 v2 v3 > v3 vector plain"},
      {w32, {vop2("v_cndmask_b32", 3, v(1), 2)}, "< v1 v2 s106 > v3 vector plain"},
      {w64, {vop2("v_cndmask_b32", 3, v(1), 2)}, "< v1 v2 s106-107 > v3 vector plain"},
      {w32, {encode::vopc("v_cmp_eq_u32", v(1), 2)}, "< v1 v2 > s106 vector plain"},
      {w64, {encode::vopc("v_cmp_eq_u32", v(1), 2)}, "< v1 v2 > s106-107 vector masks"},
      {w64, encode::vop3("v_cmp_eq_u32", 20, v(1), v(2)), "< v1 v2 > s20-21 vector plain"},
      {w32, encode::vop3sd("v_add_co_u32", 3, 20, v(1), v(2)), "< v1 v2 > v3 s20 vector plain"},
      {w32, encode::vop3("v_fma_f64", 4, v(6), v(8), v(10)), "< v6-7 v8-9 v10-11 > v4-5 vector plain"},
      {w32,
       {0xC8D00501, 0x000200FF, 7},
       "< v1 v2 > v0 v3 vector plain"},  // v_dual_mul_f32 v0, v1, v2 :: v_dual_mov_b32 v3, 7
      // Memory.
      {w32, encode::smem("s_buffer_load_b64", 20, 8, 0, 4), "< s8-11 s4 > s20-21 scalar load scc"},
      {w32, {sop1("s_sendmsg_rtn_b64", 4, 131)}, "< > s4-5 scalar load scc"},
      {w32, encode::ds("ds_load_b64", 4, 1, 0), "< v1 > v4-5 local load vector"},
      {w32, encode::ds("ds_store_b32", 0, 1, 2), "< v1 v2 > local store vector"},
      {w32, encode::ds("ds_store_2addr_stride64_b32", 0, 1, 2, 3), "< v1 v2 v3 > local store vector stride64"},
      {w32, encode::ds("ds_bpermute_b32", 4, 1, 2), "< v1 v2 > v4 local load vector"},
      {w32, encode::ds("ds_add_u32", 0, 1, 2), "< v1 v2 > local add store atomic vector"},
      {w32, encode::ds("ds_add_rtn_u32", 4, 1, 2), "< v1 v2 > v4 local add load store atomic vector"},
      {w32, encode::ds("ds_xor_b32", 0, 1, 2), "< v1 v2 > local add store atomic vector"},
      {w32, encode::ds("ds_or_b32", 0, 1, 2), "< v1 v2 > local or store atomic vector"},
      {w32, encode::ds("ds_and_b64", 0, 1, 2), "< v1 v2-3 > local and store atomic vector"},
      {w32, encode::ds("ds_min_i32", 0, 1, 2), "< v1 v2 > local min_signed store atomic vector"},
      {w32, encode::ds("ds_max_i64", 0, 1, 2), "< v1 v2-3 > local max_signed store atomic vector"},
      {w32, encode::ds("ds_min_u32", 0, 1, 2), "< v1 v2 > local min store atomic vector"},
      {w32, encode::ds("ds_max_rtn_u64", 4, 1, 2), "< v1 v2-3 > v4-5 local max load store atomic vector"},
      {w32, encode::ds("ds_min_f32", 0, 1, 2), "< v1 v2 > local store atomic vector"},
      {w32, encode::ds("ds_storexchg_rtn_b32", 4, 1, 2), "< v1 v2 > v4 local swap load store atomic vector"},
      {w32, encode::ds("ds_cmpstore_b32", 0, 1, 2, 3), "< v1 v2 v3 > local store atomic exchange vector"},
      {w32, global("global_load_b96", 16, 2, 0), "< v2 s0-1 > v16-18 memory load vector"},
      {w32, global("global_store_b128", 0, 2, 8), "< v2 v8-11 s0-1 > memory store vector"},
      {w32, global("global_atomic_swap_b32", 0, 2, 8), "< v2 v8 s0-1 > memory swap store atomic vector"},
      {w32, global("global_atomic_add_u32", 16, 2, 8, 0, true),
       "< v2 v8 s0-1 > v16 memory add load store atomic vector"},
      {w32, global("global_atomic_cmpswap_b32", 0, 2, 8), "< v2 v8-9 s0-1 > memory store atomic exchange vector"},
      {w32, encode::flat(0, "flat_load_b32", 16, 4, 0), "< v4-5 > v16 flat load vector"},
      {w32, encode::flat(1, "scratch_load_b32", 16, 4, 0), "< v4 > v16 memory load vector"},
      {w32, encode::mubuf("buffer_load_b32", 16, 1, 4, 128, 0, false, true), "< v1 s4-7 > v16 memory load vector"}};
  for (const Row& row : rows) CHECK(effects_text(row.words, row.wave) == row.text);
}

TEST_CASE("simulator effects: offsets that M0 gives", "[simulator][hazards]") {
  constexpr U m0 = 0xF855'0C07;  // ten bits of each half count: 7 and 85
  struct Row {
    Opcode opcode;
    U source, destination;
  };
  for (const Row& row : {Row{Opcode::v_mov_b32, 0, 0},
                         {Opcode::v_movreld_b32, 0, m0},
                         {Opcode::v_movrels_b32, m0, 0},
                         {Opcode::v_movrelsd_b32, m0, m0},
                         {Opcode::v_movrelsd_2_b32, 7, 85},
                         {Opcode::v_swaprel_b32, 7, 85},
                         {Opcode::s_movreld_b32, 0, m0},
                         {Opcode::s_movreld_b64, 0, m0},
                         {Opcode::s_movrels_b32, m0, 0},
                         {Opcode::s_movrels_b64, m0, 0},
                         {Opcode::s_movrelsd_2_b32, 7, 85}}) {
    INFO(info(row.opcode).name);
    const RelativeOffsets offsets = relative_offsets(row.opcode, m0);
    CHECK(offsets.source == row.source);
    CHECK(offsets.destination == row.destination);
  }
}

}  // namespace kiln::simulator::test
