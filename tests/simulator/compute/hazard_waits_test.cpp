// Which instruction waits for what, and how the faults of those that did not wait read.
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "simulator/wave/wave.hpp"
#include "tests/simulator/compute/planted.hpp"
#include "tests/simulator/compute/small_dispatch.hpp"

namespace kiln::simulator::test {

using namespace planted;

namespace {

// The reason of the fault; empty: it ran.
std::string reason_of(const Words& words, Shape shape = {}) {
  Planted program;
  const std::optional<Fault> fault = program.run(words, shape);
  if (fault) CHECK(fault->kind == FaultKind::hazard);
  return fault ? fault->reason : std::string();
}

}  // namespace

TEST_CASE("simulator hazards: each instruction that waits does so for its own counter", "[simulator][hazards]") {
  struct Waits {
    const char* name;
    Words words;
    bool loads, others;
  };
  const Waits waits[] = {
      {"nothing", {sopp("s_nop")}, false, false},
      {"vmcnt", {sopk("s_waitcnt_vmcnt", off, 0)}, true, false},
      {"lgkmcnt", {sopk("s_waitcnt_lgkmcnt", off, 0)}, false, true},
      {"vscnt", {sopk("s_waitcnt_vscnt", off, 0)}, false, false},
      {"expcnt", {sopk("s_waitcnt_expcnt", off, 0)}, false, false},
      {"idle", {sopp("s_wait_idle")}, true, true},
      {"both", {wait(0, 0)}, true, true},
      {"the first 62", {wait(62, 62)}, false, false},
      {"the first 32", {wait(32, 32)}, false, false},
      {"all but one", {wait(1, 1)}, false, false},
      {"all but 32, vmcnt", {sopk("s_waitcnt_vmcnt", off, 32)}, false, false},
      {"all but one, lgkmcnt", {sopk("s_waitcnt_lgkmcnt", off, 1)}, false, false},
      {"all but 32, lgkmcnt", {sopk("s_waitcnt_lgkmcnt", off, 32)}, false, false},
  };
  const Words memory = global("global_load_b32", 16, 2, 0), lds = encode::ds("ds_load_b32", 16, 2, 0);
  const Words scalar = encode::smem("s_load_b32", 16, 0, 0), clock = {sop1("s_sendmsg_rtn_b32", 16, 131)};
  const Words vector_use = {vop1("v_mov_b32", 30, v(16))}, scalar_use = {sop1("s_mov_b32", 40, 16)};
  for (const Waits& one : waits) {
    INFO(one.name);
    CHECK(reason_of(join({memory, one.words, vector_use})).empty() == one.loads);
    CHECK(reason_of(join({lds, one.words, vector_use})).empty() == one.others);
    CHECK(reason_of(join({scalar, one.words, scalar_use})).empty() == one.others);
    CHECK(reason_of(join({clock, one.words, scalar_use})).empty() == one.others);
  }
  // Of two loads the first: a wait for all but one is enough, where they arrive in order.
  const Words second = global("global_load_b32", 17, 2, 0), second_lds = encode::ds("ds_load_b32", 17, 2, 0);
  CHECK(reason_of(join({memory, second, {sopk("s_waitcnt_vmcnt", off, 1)}, vector_use})).empty());
  CHECK(reason_of(join({lds, second_lds, {sopk("s_waitcnt_lgkmcnt", off, 1)}, vector_use})).empty());
  CHECK_FALSE(reason_of(join({memory, second, {sopk("s_waitcnt_vmcnt", off, 2)}, vector_use})).empty());
}

TEST_CASE("simulator hazards: the fault names register, load, its place, and the wait that is missing",
          "[simulator][hazards]") {
  struct Row {
    Words load, use;
    const char* begin;
    const char* end;
  };
  const Row rows[] = {
      {global("global_load_b64", 16, 2, 0),
       {vop1("v_mov_b32", 30, v(17))},
       "v_mov_b32: v17 is read before global_load_b64 at 0x",
       " has been waited for (expected s_waitcnt with vmcnt(0) or less between them)"},
      {join({global("global_load_b32", 16, 2, 0), global("global_load_b32", 17, 2, 0),
             global("global_load_b32", 18, 2, 0)}),
       {vop1("v_mov_b32", 16, v(0))},
       "v_mov_b32: v16 is overwritten before global_load_b32 at 0x",
       " has been waited for (expected s_waitcnt with vmcnt(2) or less between them)"},
      {join({encode::ds("ds_load_b32", 16, 2, 0), encode::ds("ds_load_b32", 17, 2, 0)}),
       {vop1("v_mov_b32", 30, v(16))},
       "v_mov_b32: v16 is read before ds_load_b32 at 0x",
       " has been waited for (expected s_waitcnt with lgkmcnt(1) or less between them)"},
      {join({encode::smem("s_load_b64", 106, 0, 0), encode::smem("s_load_b32", 20, 0, 0)}),
       {sop1("s_mov_b32", 40, 106)},
       "s_mov_b32: vcc_lo is read before s_load_b64 at 0x",
       " has been waited for (expected s_waitcnt with lgkmcnt(0) or less between them)"},
      {encode::smem("s_load_b64", 106, 0, 0),
       {sop1("s_mov_b32", 107, 128)},
       "s_mov_b32: vcc_hi is overwritten before s_load_b64 at 0x",
       " has been waited for (expected s_waitcnt with lgkmcnt(0) or less between them)"},
      {{sop1("s_sendmsg_rtn_b32", 125, 131)},
       {sop1("s_mov_b32", 40, 125)},
       "s_mov_b32: m0 is read before s_sendmsg_rtn_b32 at 0x",
       " has been waited for (expected s_waitcnt with lgkmcnt(0) or less between them)"},
      {encode::smem("s_load_b32", 105, 0, 0),
       {sop1("s_mov_b32", 40, 105)},
       "s_mov_b32: s105 is read before s_load_b32 at 0x",
       " has been waited for (expected s_waitcnt with lgkmcnt(0) or less between them)"},
  };
  for (const Row& row : rows) {
    Planted program;
    const std::optional<Fault> fault = program.run(join({row.load, row.use}));
    INFO(row.begin);
    REQUIRE(fault);
    const std::string begin = row.begin;
    CHECK(fault->reason == begin.substr(0, begin.size() - 2) + hex(program.at(0)) + row.end);
    CHECK(fault->address == program.at(row.load.size()));
    CHECK(fault->dword == row.use.front());
  }
}

TEST_CASE("simulator hazards: the counters of gfx10.3's s_waitcnt", "[simulator][hazards]") {
  constexpr U to_v1 = 0x34020082;                                            // v_lshlrev_b32 v1, 2, v0
  constexpr U load_v2 = 0xDC308000, load_v2_at_s0 = 0x02000001;              // global_load_dword v2, v1, s[0:1]
  constexpr U load_v3_at_s0 = 0x03000001, use_v2 = 0x7E080302;               // v_mov_b32 v4, v2
  constexpr U load_s16 = 0xF4000400, no_offset = 0xFA000000;                 // s_load_dword s16, s[0:1], 0x0
  constexpr U use_s16 = 0xBEA80310, waitcnt = 0xBF8C0000, end = 0xBF810000;  // s_mov_b32 s40, s16
  const std::vector<U> vector = {to_v1, load_v2, load_v2_at_s0, load_v2, load_v3_at_s0};
  const std::vector<U> scalar = {load_s16, no_offset};
  struct Row {
    U simm;
    bool vector, scalar;  // whether it is enough
  };
  for (const Row& row : {Row{0xFF7F, false, false},  // nothing
                         {0x3F71, true, false},      // vmcnt(1)
                         {0x3F70, true, false},      // vmcnt(0)
                         {0x3F72, false, false},     // vmcnt(2)
                         {0x7F71, false, false},     // vmcnt(17)
                         {0xBF70, false, false},     // vmcnt(32)
                         {0xC07F, false, true},      // lgkmcnt(0)
                         {0xC17F, false, false},     // lgkmcnt(1)
                         {0xE07F, false, false},     // lgkmcnt(32)
                         {0x0070, true, true}}) {
    for (const bool of_vector : {true, false}) {
      INFO(std::hex << row.simm << " " << of_vector);
      std::vector<U> words = of_vector ? vector : scalar;
      words.push_back(waitcnt | row.simm);
      words.push_back(of_vector ? use_v2 : use_s16);
      words.resize(words.size() + 16, end);
      Launcher launcher;
      DispatchState state = state_of(launcher.memory, words);
      state.generation = Generation::gfx10_3;
      state.rsrc1 = 0x00AF0001;
      state.rsrc2 = 2U << 1U;
      const std::uint64_t buffer = launcher.memory.allocate(4096);
      state.user_data[0] = static_cast<U>(buffer);
      state.user_data[1] = static_cast<U>(buffer >> 32U);
      const auto fault = launcher.engine.run_dispatch(state, launcher.memory);
      INFO((fault ? fault->reason : std::string()));
      CHECK(fault.has_value() != (of_vector ? row.vector : row.scalar));
      if (fault) CHECK(fault->kind == FaultKind::hazard);
    }
  }
}

}  // namespace kiln::simulator::test
