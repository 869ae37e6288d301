// The compute engine: what registers ask for, what waves start with, what is refused, and how dispatches end.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "simulator/compute/group.hpp"
#include "tests/simulator/compute/small_dispatch.hpp"

namespace kiln::simulator::test {
TEST_CASE("simulator engine: registers that hardware would hang on are refused", "[simulator][compute]") {
  Launcher launcher;
  const auto refused = [&](auto change) {
    DispatchState state = state_of(launcher.memory, {});
    change(state);
    const std::optional<Fault> fault = launcher.engine.run_dispatch(state, launcher.memory);
    REQUIRE(fault);
    return *fault;
  };
  CHECK(refused([](DispatchState& s) { s.cu_mask.fill(0); }).kind == FaultKind::bad_state);
  CHECK(refused([](DispatchState& s) { s.num_thread[1] = 0; }).reason.find("NUM_THREAD_Y") != std::string::npos);
  CHECK(refused([](DispatchState& s) { s.num_thread = {32, 32, 2}; }).reason.find("2048") != std::string::npos);
  CHECK(refused([](DispatchState& s) { s.initiator &= ~enable; }).kind == FaultKind::bad_state);
  CHECK(refused([](DispatchState& s) { s.rsrc1 |= 1U << 20; }).reason.find("PRIV") != std::string::npos);
  CHECK(refused([](DispatchState& s) { s.rsrc2 |= 17U << 1; }).reason.find("17 of 16") != std::string::npos);
  CHECK(refused([](DispatchState& s) { s.rsrc2 |= 200U << 15; }).kind == FaultKind::overrun);
  CHECK(refused([](DispatchState& s) { s.rsrc2 |= 1; }).reason.find("TMPRING_SIZE") != std::string::npos);
  CHECK(refused([](DispatchState& s) {
          s.rsrc2 |= 1;
          s.tmpring_size = 1 | 1U << 12;
        }).reason.find("SCRATCH_BASE") != std::string::npos);
  CHECK(refused([](DispatchState& s) {
          s.rsrc2 |= 1;
          s.tmpring_size = 1 | 1U << 12;
          s.scratch_base = 4096;
          s.num_thread[0] = 64;
        }).reason.find("2 waves, scratch for 1") != std::string::npos);
  CHECK(refused([](DispatchState& s) { s.program = 0x1000; }).kind == FaultKind::unmapped);
  CHECK(launcher.engine.counters().groups == 1);  // the last one got as far as its first instruction
}

TEST_CASE("simulator engine: groups that are empty, partial, or counted in threads", "[simulator][compute]") {
  Launcher launcher;
  const auto counted = [&](auto change) {
    const ComputeCounters before = launcher.engine.counters();
    DispatchState state = state_of(launcher.memory, {});
    change(state);
    REQUIRE_FALSE(launcher.engine.run_dispatch(state, launcher.memory));
    const ComputeCounters& after = launcher.engine.counters();
    return std::pair(after.groups - before.groups, after.waves - before.waves);
  };
  using Counts = std::pair<std::uint64_t, std::uint64_t>;
  CHECK(counted([](DispatchState& s) { s.groups = {4, 0, 1}; }) == Counts(0, 0));
  CHECK(counted([](DispatchState& s) { s.groups = {4, 3, 2}; }) == Counts(24, 24));
  CHECK(counted([](DispatchState& s) { s.num_thread[0] = 100; }) == Counts(1, 4));
  CHECK(counted([](DispatchState& s) {
          s.num_thread[0] = 100;
          s.initiator &= ~wave32;
        }) == Counts(1, 2));
  // 5 groups of 64 threads, the last of 16: one wave.
  CHECK(counted([](DispatchState& s) {
          s.num_thread[0] = 64 | 16U << 16;
          s.groups[0] = 5;
          s.initiator |= partial_groups;
        }) == Counts(5, 9));
  CHECK(counted([](DispatchState& s) {
          s.num_thread[0] = 64;
          s.groups[0] = 64 * 4 + 16;
          s.initiator |= by_threads;
        }) == Counts(5, 9));
  CHECK(counted([](DispatchState& s) {
          s.start = {3, 0, 0};
          s.groups[0] = 5;
          s.initiator &= ~from_zero;
        }) == Counts(2, 2));
}

TEST_CASE("simulator engine: a wave that does not end is stopped by the watchdog", "[simulator][compute]") {
  for (const unsigned threads : {1U, 2U}) {
    Launcher launcher({.instructions_per_wave = 100'000, .threads = threads, .check_hazards = threads == 1});
    DispatchState state = state_of(launcher.memory, {forever});
    state.groups[0] = 8;
    const std::optional<Fault> fault = launcher.engine.run_dispatch(state, launcher.memory);
    REQUIRE(fault);
    CHECK(fault->kind == FaultKind::watchdog);
    CHECK(fault->address == state.program);
    CHECK(fault->reason.find("100000") != std::string::npos);
    // The engine goes on with the next dispatch.
    CHECK_FALSE(launcher.engine.run_dispatch(state_of(launcher.memory, {}), launcher.memory));
  }
}

TEST_CASE("simulator engine: stop() ends a dispatch from another thread, and later ones too", "[simulator][compute]") {
  Launcher launcher({.threads = 2, .check_hazards = false});
  DispatchState state = state_of(launcher.memory, {forever});
  state.groups[0] = 4;
  std::optional<Fault> fault;
  std::thread runs([&] { fault = launcher.engine.run_dispatch(state, launcher.memory); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  launcher.engine.stop("reset asked for");
  runs.join();
  REQUIRE(fault);
  CHECK(fault->kind == FaultKind::planted);
  CHECK(fault->reason == "reset asked for");
  fault = launcher.engine.run_dispatch(state_of(launcher.memory, {}), launcher.memory);
  REQUIRE(fault);
  CHECK(fault->kind == FaultKind::planted);
  launcher.engine.stop(nullptr);
  CHECK_FALSE(launcher.engine.run_dispatch(state_of(launcher.memory, {}), launcher.memory));
}

TEST_CASE("simulator engine: waves that have ended do not hold up a barrier", "[simulator][compute]") {
  // Waves whose first lane has a thread id below 32 end at once; the others meet at two barriers.
  // v_readfirstlane_b32 s4, v0 · s_cmp_lt_u32 s4, 32 · s_cbranch_scc1 +2 · s_barrier · s_barrier · s_endpgm
  const std::vector<U> words = {0x7E080500, 0xBF0AA004, 0xBFA20002, barrier, barrier, endpgm};
  Launcher launcher;
  DispatchState state = state_of(launcher.memory, words);
  state.num_thread[0] = 128;
  REQUIRE_FALSE(launcher.engine.run_dispatch(state, launcher.memory));
  CHECK(launcher.engine.counters().waves == 4);
  CHECK(launcher.engine.counters().instructions == 4 + 3 * 6);
}

TEST_CASE("simulator engine: SGPRs at entry follow the registers", "[simulator][compute]") {
  // s_store does not exist on gfx11, so a lane writes them: v_mov_b32 v1, s[2+i] · global_store_b32 v2, v1, s[0:1]
  // offset
  std::vector<U> words = {0x7E040280};  // v_mov_b32 v2, 0
  for (U i = 0; i < 6; ++i) {
    words.push_back(0x7E020200U | (2 + i));
    words.push_back(0xDC6A0000U | i * 4);
    words.push_back(0x00000000U | 0U << 16 | 1U << 8 | 2U);
  }
  Launcher launcher({.check_hazards = false});  // what is not given is stored too
  const std::uint64_t out = launcher.memory.allocate(4096);
  DispatchState state = state_of(launcher.memory, words);
  state.user_data[0] = static_cast<U>(out);
  state.user_data[1] = static_cast<U>(out >> 32);
  state.user_data[2] = 0xABCD;
  state.rsrc2 = 3U << 1 | 1U << 7 | 1U << 9 | 1U << 10;  // three of user data, group X and Z, group information
  state.start = {6, 0, 3};
  state.groups = {7, 1, 4};
  state.initiator &= ~from_zero;
  REQUIRE_FALSE(launcher.engine.run_dispatch(state, launcher.memory));
  const std::vector<U> got = launcher.memory.values<U>(out, 6);
  CHECK(got[0] == 0xABCD);
  CHECK(got[1] == 6);
  CHECK(got[2] == 3);
  CHECK(got[3] == (1U | 1U << 31));  // one wave, the first
  CHECK(got[4] == got[5]);           // nobody set these
}

TEST_CASE("simulator engine: the group information tells each wave its number", "[simulator][compute]") {
  // v_lshlrev_b32 v1, 2, v0 · v_mov_b32 v2, s2 · global_store_b32 v1, v2, s[0:1]
  const std::vector<U> words = {0x30020082, 0x7E040202, 0xDC6A0000, 0x00000201};
  Launcher launcher;
  const std::uint64_t out = launcher.memory.allocate(4096);
  DispatchState state = state_of(launcher.memory, words);
  state.user_data[0] = static_cast<U>(out);
  state.user_data[1] = static_cast<U>(out >> 32);
  state.rsrc2 = 2U << 1 | 1U << 10;
  state.num_thread = {96, 1, 1};
  REQUIRE_FALSE(launcher.engine.run_dispatch(state, launcher.memory));
  const std::vector<U> got = launcher.memory.values<U>(out, 96);
  CHECK(got[0] == 0x80000003);   // three waves, the first
  CHECK(got[32] == 0x00100043);  // the wave's number in bits 6 and 20
  CHECK(got[95] == 0x00200083);
}

TEST_CASE("simulator engine: v0 of gfx11 holds as many thread ids as the registers ask for", "[simulator][compute]") {
  // v_mbcnt_lo_u32_b32 v1, -1, 0 · v_lshlrev_b32 v1, 2, v1 · global_store_b32 v1, v0, s[0:1]
  const std::vector<U> words = {0xD71F0001, 0x000100C1, 0x30020282, 0xDC6A0000, 0x00000001};
  for (const U ids : {1U, 2U, 3U}) {
    INFO(ids);
    Launcher launcher;
    const std::uint64_t out = launcher.memory.allocate(4096);
    DispatchState state = state_of(launcher.memory, words);
    state.user_data[0] = static_cast<U>(out);
    state.user_data[1] = static_cast<U>(out >> 32);
    state.rsrc2 = 2U << 1 | (ids - 1) << 11;
    state.num_thread = {4, 2, 2};
    REQUIRE_FALSE(launcher.engine.run_dispatch(state, launcher.memory));
    const std::vector<U> got = launcher.memory.values<U>(out, 16);
    for (U thread = 0; thread < 16; ++thread) {
      const U x = thread % 4, y = thread / 4 % 2, z = thread / 8;
      CHECK(got[thread] == (x | (ids > 1 ? y << 10 : 0) | (ids > 2 ? z << 20 : 0)));
    }
  }
}

TEST_CASE("simulator engine: the shaders' clock goes on from dispatch to dispatch", "[simulator][compute]") {
  // v_mov_b32 v2, 0 · s_getreg_b32 s4, hwreg(HW_REG_SHADER_CYCLES, 0, 20) · v_mov_b32 v1, s4 · global_store_b32 v2, v1,
  // s[0:1]
  const std::vector<U> words = {0x7E040280, 0xB884981D, 0x7E020204, 0xDC6A0000, 0x00000102};
  Launcher launcher;
  const std::uint64_t out = launcher.memory.allocate(4096);
  DispatchState state = state_of(launcher.memory, words);
  state.user_data[0] = static_cast<U>(out);
  state.user_data[1] = static_cast<U>(out >> 32);
  state.rsrc2 = 2U << 1;
  for (U before = 0, i = 0; i < 4; ++i) {
    REQUIRE_FALSE(launcher.engine.run_dispatch(state, launcher.memory));
    const U now = launcher.memory.values<U>(out, 1)[0];
    if (i != 0) CHECK(now > before);
    before = now;
  }
}

TEST_CASE("simulator engine: a fault in one group stops the others", "[simulator][compute]") {
  // global_load_b32 v1, v0, s[0:1] from an address that nothing is mapped at
  const std::vector<U> words = {0xDC520000U, 0x01000000U, endpgm};
  Launcher launcher({.threads = 2, .check_hazards = false});
  DispatchState state = state_of(launcher.memory, words);
  state.user_data = {};
  state.rsrc2 = 2U << 1;
  state.groups[0] = 100'000;
  const std::optional<Fault> fault = launcher.engine.run_dispatch(state, launcher.memory);
  REQUIRE(fault);
  CHECK(fault->kind == FaultKind::unmapped);
  CHECK(launcher.engine.counters().groups < 1000);
}

TEST_CASE("simulator engine: a fault shows the word at its address, or none", "[simulator][compute]") {
  Launcher launcher({.instructions_per_wave = 10'000});
  const auto fault_of = [&](std::vector<U> words) {
    DispatchState state = state_of(launcher.memory, {});
    words.resize(std::max<std::size_t>(words.size(), 4));  // zeros: no instruction
    state.program = launcher.memory.allocate(words, Rights::execute);
    state.user_data[2] = 0x10000;
    state.rsrc2 = 4U << 1;
    const std::optional<Fault> fault = launcher.engine.run_dispatch(state, launcher.memory);
    REQUIRE(fault);
    return std::pair(*fault, fault->address - state.program);
  };
  {
    const auto [fault, at] = fault_of({0x7E020280});  // v_mov_b32 v1, 0, and no end
    CHECK(at == 4);
    CHECK(fault.dword == 0U);
    CHECK(describe(fault).find("(0x00000000): VOP2 has no opcode 0") != std::string::npos);
  }
  {
    const auto [fault, at] = fault_of({0x7E020280, 0x7E000000, 0xD0000000});  // the second is v_nop
    CHECK(at == 8);
    CHECK(fault.dword == 0xD0000000);
  }
  {
    const auto [fault, at] = fault_of({0x7E020280, forever});
    CHECK(fault.kind == FaultKind::watchdog);
    CHECK(at == 4);
    CHECK(fault.dword == forever);
  }
  for (const U target :
       {0x10000U, 0x10002U, 0x10124U}) {  // s_mov_b32 s2, target · s_mov_b32 s3, 0 · s_setpc_b64 s[2:3]
    const auto [fault, at] = fault_of({0xBE8200FF, target, 0xBE830080, 0xBE804802});
    CHECK(fault.kind == (target % 4 == 0 ? FaultKind::unmapped : FaultKind::misaligned));
    CHECK(fault.address == target);
    CHECK(fault.dword == 0xBE804802);
    CHECK(fault.reason.find("(after s_setpc_b64 at 0x") != std::string::npos);
  }
  {
    const auto [fault, at] = fault_of({0xBFA07FFF});  // s_branch to where nothing is
    CHECK(fault.kind == FaultKind::unmapped);
    CHECK(at == 4 + 4 * 0x7FFF);
    CHECK(fault.dword == 0xBFA07FFF);
  }
  DispatchState state = state_of(launcher.memory, {});
  state.program = 0x20000;
  const std::optional<Fault> fault = launcher.engine.run_dispatch(state, launcher.memory);
  REQUIRE(fault);
  CHECK(fault->address == 0x20000);
  CHECK_FALSE(fault->dword);
}

TEST_CASE("simulator engine: shared VGPRs lie behind a wave's own, one word for lanes n and n + 32",
          "[simulator][compute]") {
  // gfx10.3, waves of 64 lanes with 8 VGPRs of their own: v8 and v9 are shared. s[0:1]: where results go.
  constexpr U end10 = 0xBF810000, all_lanes = 0xBEFE04C1;       // s_endpgm · s_mov_b64 exec, -1
  constexpr U low_lanes = 0x92FE80A0, high_lanes = 0x92FEA0A0;  // s_bfm_b64 exec, 32, 0 or 32
  Launcher launcher;
  const auto run = [&](std::vector<U> words, U shared, std::vector<U>& out) {
    // v5: 4 * lane; v2 as it is then goes to memory.
    std::vector<U> code = {0x340A0082};  // v_lshlrev_b32 v5, 2, v0
    code.insert(code.end(), words.begin(), words.end());
    code.insert(code.end(), {all_lanes, 0xDC708000, 0x00000205, end10});  // global_store_dword v5, v2, s[0:1]
    code.resize(code.size() + 16, end10);
    const std::uint64_t buffer = launcher.memory.allocate(4096);
    DispatchState state = state_of(launcher.memory, {});
    state.generation = Generation::gfx10_3;
    state.program = launcher.memory.allocate(code, Rights::execute);
    state.rsrc1 = 0x00AF0001;  // 8 VGPRs
    state.rsrc2 = 2U << 1;
    state.rsrc3 = shared;
    state.user_data[0] = static_cast<U>(buffer);
    state.user_data[1] = static_cast<U>(buffer >> 32);
    state.num_thread[0] = 64;
    state.initiator &= ~wave32;
    std::optional<Fault> fault = launcher.engine.run_dispatch(state, launcher.memory);
    out = launcher.memory.values<U>(buffer, 64);
    return fault;
  };
  std::vector<U> out;
  const auto expect = [&](auto value) {
    for (U lane = 0; lane < 64; ++lane) {
      INFO("lane " << lane);
      CHECK(out[lane] == value(lane));
    }
  };
  // v_mov_b32 v8, v0 · v_mov_b32 v2, v8: the high half writes last.
  REQUIRE_FALSE(run({0x7E100300, 0x7E040308}, 1, out));
  expect([](U lane) { return 32 + lane % 32; });
  // Only the low half writes.
  REQUIRE_FALSE(run({low_lanes, 0x7E100300, all_lanes, 0x7E040308}, 1, out));
  expect([](U lane) { return lane % 32; });
  // v_mov_b32 v9, v0 of the low half, then v_add_nc_u32 v9, v9, v9 of the high half, which reads that.
  REQUIRE_FALSE(run({low_lanes, 0x7E120300, high_lanes, 0x4A121309, all_lanes, 0x7E040309}, 1, out));
  expect([](U lane) { return 2 * (lane % 32); });
  // v_mov_b32 v2, v0 · v_mov_b32 v8, v0 · v_swap_b32 v8, v2: each half takes what lies there when its turn comes.
  REQUIRE_FALSE(run({0x7E040300, 0x7E100300, 0x7E10CB02}, 1, out));
  expect([](U lane) { return lane < 32 ? lane + 32 : lane - 32; });
  // Only the high half writes; then none does: v_mov_b32 v8, v0 · s_mov_b64 exec, 0 · v_mov_b32 v8, 0
  REQUIRE_FALSE(run({high_lanes, 0x7E100300, 0xBEFE0480, 0x7E100280, all_lanes, 0x7E040308}, 1, out));
  expect([](U lane) { return 32 + lane % 32; });
  // v_swap_b32 v8, v2 with no lane on leaves both.
  REQUIRE_FALSE(run({0x7E040300, 0x7E100280, 0xBEFE0480, 0x7E10CB02, all_lanes}, 1, out));
  expect([](U lane) { return lane; });
  // A sum with carry where the low half or none is on: the other words of the mask become 0. v_addc_co_u32 v2, vcc, 0,
  // 0
  REQUIRE_FALSE(
      run({0x7E040280, 0xBEEA04C1, low_lanes, 0xD70F6A09, 0x000200C1, all_lanes, 0x7E020280, 0x50040280}, 1, out));
  expect([](U lane) { return lane == 0 || lane >= 32 ? 0U : 1U; });
  REQUIRE_FALSE(
      run({0x7E040280, 0xBEEA04C1, 0xBEFE0480, 0xD70F6A09, 0x000200C1, all_lanes, 0x7E020280, 0x50040280}, 1, out));
  expect([](U) { return 0U; });
  // v_mov_b32_dpp v9, v0 row_mask:0xc: rows of the high half alone.
  REQUIRE_FALSE(run({low_lanes, 0x7E120280, all_lanes, 0x7E1202FA, 0xCF00E400, 0x7E040309}, 1, out));
  expect([](U lane) { return 32 + lane % 32; });
  // v_add_co_u32 v9, vcc, -1, v0: each half writes its own word of the mask. v_addc_co_u32 v2, vcc, 0, 0, vcc
  REQUIRE_FALSE(run({0xD70F6A09, 0x000200C1, 0x7E020280, 0x50040280}, 1, out));
  expect([](U lane) { return lane == 0 ? 0U : 1U; });
  // global_load_dword v8, v5, s[0:1] · s_waitcnt vmcnt(0) after a store of v0 there.
  REQUIRE_FALSE(run({0xDC708000, 0x00000005, 0xDC308000, 0x08000005, 0xBF8C3F70, 0x7E040308}, 1, out));
  expect([](U lane) { return 32 + lane % 32; });
  // A permutation of all lanes, as a compiler builds it from two of 32: lane n reads lane 63 - n, all of them in the
  // other half. v1 = 4 * (63 - lane).
  REQUIRE_FALSE(run({0x4C0200BF, 0x34020282,  // v_sub_nc_u32 v1, 63, v0 · v_lshlrev_b32 v1, 2, v1
                     0x7E1202FA, 0xCF00E400, low_lanes, 0x7E100300,  // v9: high half of v0, v8: low half
                     0xDACC0000, 0x09000901, high_lanes, 0xDACC0000, 0x08000801, all_lanes,  // ds_bpermute_b32 of each
                     0xBF8CC07F,                                                             // s_waitcnt lgkmcnt(0)
                     0x7E0402FA, 0x3F00E409, 0x7E0402FA, 0xCF00E408},  // v2: v9 in the low half, v8 in the high one
                    1, out));
  expect([](U lane) { return 63 - lane; });

  const std::optional<Fault> beyond = run({0x7E200300}, 1, out);  // v_mov_b32 v16, v0
  REQUIRE(beyond);
  CHECK(beyond->reason == "v_mov_b32: v16 of 8 VGPRs and 8 shared ones");
  CHECK_FALSE(run({0x7E200300, 0x7E040310}, 2, out));
  CHECK(run({0x7E100300}, 0, out)->reason == "v_mov_b32: v8 of 8 VGPRs");
  DispatchState state = state_of(launcher.memory, {});
  state.rsrc3 = 1;
  CHECK(launcher.engine.run_dispatch(state, launcher.memory)->reason.find("waves of 32") != std::string::npos);
  state.initiator &= ~wave32;
  CHECK_FALSE(launcher.engine.run_dispatch(state, launcher.memory));
  state.rsrc1 = 0x00AF003F;
  CHECK(launcher.engine.run_dispatch(state, launcher.memory)->kind == FaultKind::overrun);
}

}  // namespace kiln::simulator::test
