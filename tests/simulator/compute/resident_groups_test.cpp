// The compute engine: which workgroups are resident together, and the order in which they run.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "simulator/compute/group.hpp"
#include "tests/simulator/compute/small_dispatch.hpp"

namespace kiln::simulator::test {
namespace {

// s[0:1]: buffer, s2: a number, s3: the group.
DispatchState groups_of(Launcher& launcher, const std::vector<U>& words, U groups, std::uint64_t buffer, U number) {
  DispatchState state = state_of(launcher.memory, words);
  state.num_thread[0] = 1;
  state.groups[0] = groups;
  state.user_data[0] = static_cast<U>(buffer);
  state.user_data[1] = static_cast<U>(buffer >> 32);
  state.user_data[2] = number;
  state.rsrc2 = 3U << 1 | 1U << 7;
  return state;
}

// Counts up the first word, waits until it is s2, counts up the second word.
const std::vector<U> grid_barrier = {0x7E020280, 0x7E040281, 0xDCD60000, 0x00000201, 0xDC526000, 0x03000001,
                                     0xBF8903F7, 0x7E080503, 0xBF0A0204, 0xBFA2FFFA, 0xDCD60004, 0x00000201};
// Waits until word g + 1 is not 0, unless g is s2; sets word g.
const std::vector<U> waits_for_the_next = {0x7E020280, 0x7E040281, 0x84058203, 0x7E080205, 0xBF060203,
                                           0xBFA20006, 0xDC524004, 0x03000004, 0xBF8903F7, 0x7E080503,
                                           0xBF068004, 0xBFA2FFFA, 0xDC6A0000, 0x00000204};
// Word 1 + g becomes the first word, which counts up.
const std::vector<U> order_of_groups = {0x7E020280, 0x7E040281, 0x84058203, 0x7E080205, 0xDCD64000,
                                        0x03000201, 0xBF8903F7, 0xDC6A0004, 0x00000304};
// Eight times: loads the first word, jumps, stores one more than it was.
const std::vector<U> race = {0x7E020280, 0xB0050008, 0xDC520000, 0x03000001, 0xBF8903F7, 0xBFA00000, 0xD5250003,
                             0x00010303, 0xDC6A0000, 0x00000301, 0x80858105, 0xBF078005, 0xBFA2FFF5};

}  // namespace

TEST_CASE("simulator engine: workgroups that are resident together may wait for one another", "[simulator][compute]") {
  // A compute unit holds 16 groups. The time grows with the square of their number. Hazards are looked for on one
  // thread alone.
  struct Form {
    unsigned threads, compute_units;
    U groups;
  };
  for (const auto [threads, compute_units, groups] : {Form{1, 1, 2}, Form{1, 1, 16}, Form{1, 3, 33}, Form{2, 1, 16},
                                                      Form{2, 3, 48}, Form{5, 1, 16}, Form{5, 3, 4}, Form{5, 3, 33}}) {
    INFO(threads << " threads, " << compute_units << " compute units, " << groups << " groups");
    Launcher launcher({.threads = threads, .compute_units = compute_units, .check_hazards = threads == 1});
    const std::uint64_t buffer = launcher.memory.allocate(4096);
    REQUIRE_FALSE(
        launcher.engine.run_dispatch(groups_of(launcher, grid_barrier, groups, buffer, groups), launcher.memory));
    CHECK(launcher.memory.values<U>(buffer, 2) == std::vector<U>{groups, groups});
    CHECK(launcher.engine.counters().groups == groups);
    const std::uint64_t other = launcher.memory.allocate(4096);
    REQUIRE_FALSE(launcher.engine.run_dispatch(groups_of(launcher, waits_for_the_next, groups, other, groups - 1),
                                               launcher.memory));
    CHECK(launcher.memory.values<U>(other, groups + 1).back() == 0);
    CHECK(launcher.memory.values<U>(other, groups) == std::vector<U>(groups, 1));
  }
  for (const std::uint64_t seed : {0U, 1U, 2U}) {
    Launcher launcher({.compute_units = 3, .schedule_seed = seed});
    const std::uint64_t buffer = launcher.memory.allocate(4096);
    REQUIRE_FALSE(launcher.engine.run_dispatch(groups_of(launcher, grid_barrier, 48, buffer, 48), launcher.memory));
    CHECK(launcher.memory.values<U>(buffer, 2) == std::vector<U>{48, 48});
  }
}

TEST_CASE("simulator engine: a workgroup that waits for one that has not begun is a fault", "[simulator][compute]") {
  for (const unsigned threads : {1U, 2U}) {
    Launcher launcher({.watchdog = std::chrono::milliseconds(100),
                       .threads = threads,
                       .compute_units = 3,
                       .check_hazards = threads == 1});
    const std::uint64_t buffer = launcher.memory.allocate(4096);
    DispatchState state = groups_of(launcher, grid_barrier, 49, buffer, 49);
    const std::optional<Fault> fault = launcher.engine.run_dispatch(state, launcher.memory);
    REQUIRE(fault);
    CHECK(fault->kind == FaultKind::watchdog);
    CHECK(fault->address >= state.program);
    CHECK(fault->address < state.program + 64);
    CHECK(fault->dword);
    CHECK(
        fault->reason ==
        "no workgroup has ended for 100 ms, the watchdog's time; of 49 workgroups the device holds 48 at once, so one "
        "may wait for one that has not begun");
    // More groups than the device holds are no fault where none waits for a later one.
    CHECK_FALSE(launcher.engine.run_dispatch(groups_of(launcher, order_of_groups, 500, buffer, 0), launcher.memory));
  }
}

TEST_CASE("simulator engine: what a group needs says how many are resident", "[simulator][compute]") {
  Launch launch;
  launch.generation = Generation::gfx11;
  launch.wave = WaveSize::wave32;
  launch.threads = {64, 1, 1};
  launch.vgprs = 24;
  CHECK(resident_groups(launch, 10) == 160);  // 32 waves, groups of two
  launch.vgprs = 256;                         // 6 of 1,536
  CHECK(resident_groups(launch, 10) == 60);
  launch.generation = Generation::gfx10_3;  // 4 of 1,024
  CHECK(resident_groups(launch, 10) == 40);
  launch.lds_bytes = 40'000;
  CHECK(resident_groups(launch, 10) == 10);
  launch.lds_bytes = 0;
  launch.threads = {1024, 1, 1};
  CHECK(resident_groups(launch, 10) == 10);
  launch.vgprs = 8;
  launch.threads = {32, 1, 1};
  launch.scratch = true;
  launch.scratch_slots = 7;
  CHECK(resident_groups(launch, 10) == 7);
  launch.scratch = false;
  launch.wave = WaveSize::wave64;
  launch.threads = {256, 1, 1};
  CHECK(resident_groups(launch, 1) == 8);
}

TEST_CASE("simulator engine: a seed draws the order of workgroups, the same each time", "[simulator][compute]") {
  const auto order = [](const ComputeLimits& limits) {
    Launcher launcher(limits);
    const std::uint64_t buffer = launcher.memory.allocate(8192);
    REQUIRE_FALSE(launcher.engine.run_dispatch(groups_of(launcher, order_of_groups, 300, buffer, 0), launcher.memory));
    std::vector<U> words = launcher.memory.values<U>(buffer, 301);
    CHECK(words[0] == 300);
    words.erase(words.begin());
    return words;
  };
  std::vector<U> ascending(300);
  for (U i = 0; i < 300; ++i) ascending[i] = i;
  CHECK(order({.threads = 1}) == ascending);
  const std::vector<U> first = order({.schedule_seed = 1});
  CHECK(first == order({.schedule_seed = 1}));
  CHECK(first != order({.schedule_seed = 2}));
  CHECK(first != ascending);
  std::vector<U> sorted = first;
  std::sort(sorted.begin(), sorted.end());
  CHECK(sorted == ascending);
}

TEST_CASE("simulator engine: a drawn schedule shows a race that the plain one hides", "[simulator][compute]") {
  const auto counted = [](const ComputeLimits& limits) {
    Launcher launcher(limits);
    const std::uint64_t buffer = launcher.memory.allocate(4096);
    REQUIRE_FALSE(launcher.engine.run_dispatch(groups_of(launcher, race, 16, buffer, 0), launcher.memory));
    return launcher.memory.values<U>(buffer, 1)[0];
  };
  CHECK(counted({.threads = 1, .check_hazards = false}) == 128);
  // A seed gives one order, whatever else the machine does: these counts.
  const std::vector<U> expected{36, 128, 122, 96, 108, 104, 128, 112};
  for (unsigned repetition = 0; repetition < 20; ++repetition) {
    std::vector<U> counts;
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      counts.push_back(counted({.schedule_seed = seed, .check_hazards = false}));
    }
    CHECK(counts == expected);
  }
}

}  // namespace kiln::simulator::test
