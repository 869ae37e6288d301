// The compute engine: what registers ask for, what waves start with, what is refused, and how dispatches end.
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "tests/simulator/compute/launcher.hpp"

namespace kiln::simulator::test {
namespace {

using U = std::uint32_t;

constexpr U endpgm = 0xBFB00000, barrier = 0xBFBD0000, forever = 0xBFA0FFFF;
constexpr U enable = 1, partial_groups = 2, from_zero = 4, by_threads = 32, wave32 = 1U << 15;
constexpr U rsrc1_8_vgprs = 0x00AF0000;

DispatchState state_of(FakeMemory& memory, std::vector<U> words) {
  words.resize(words.size() + 16, endpgm);
  DispatchState state;
  state.generation = Generation::gfx11;
  state.program = memory.allocate(words, Rights::execute);
  state.rsrc1 = rsrc1_8_vgprs;
  state.num_thread = {32, 1, 1};
  state.groups = {1, 1, 1};
  state.cu_mask.fill(~0U);
  state.initiator = enable | from_zero | wave32;
  return state;
}

}  // namespace

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
    Launcher launcher({.instructions_per_wave = 100'000, .threads = threads});
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
  Launcher launcher({.threads = 2});
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
  Launcher launcher;
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

TEST_CASE("simulator engine: a fault in one group stops the others", "[simulator][compute]") {
  // global_load_b32 v1, v0, s[0:1] from an address that nothing is mapped at
  const std::vector<U> words = {0xDC520000U, 0x01000000U, endpgm};
  Launcher launcher({.threads = 2});
  DispatchState state = state_of(launcher.memory, words);
  state.user_data = {};
  state.rsrc2 = 2U << 1;
  state.groups[0] = 100'000;
  const std::optional<Fault> fault = launcher.engine.run_dispatch(state, launcher.memory);
  REQUIRE(fault);
  CHECK(fault->kind == FaultKind::unmapped);
  CHECK(launcher.engine.counters().groups < 1000);
}

}  // namespace kiln::simulator::test
