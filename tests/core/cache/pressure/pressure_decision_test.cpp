// What is decided under pressure, on readings that the test writes: half goes at once, it does not swing, it comes
// back.
#include "base/os/memory_pressure.hpp"
#include "core/cache/workplace.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

namespace kiln::test {
namespace {

constexpr std::uint64_t second = 1'000'000'000;
constexpr std::uint64_t configured = 1600;

MemoryReading stalled(double percent) { return {percent, {}}; }
MemoryReading group(std::uint64_t limit, std::uint64_t used) { return {{}, GroupUse{limit, used}}; }

// A cache that holds as much as it may.
struct Full {
  PressureState state;
  std::uint64_t held = configured;
  std::vector<std::uint64_t> steps_at;

  void at(std::uint64_t seconds, const MemoryReading& reading) {
    const auto before = state.cap;
    state = decide(state, reading, configured, held, seconds * second);
    held = bound_of(state, reading, configured);
    if (state.cap != before) steps_at.push_back(seconds);
  }
};

TEST_CASE("cache::pressure: without pressure, and without files that tell of it, all that is configured may stay") {
  Full full;
  for (std::uint64_t at = 0; at < 100; ++at) full.at(at, at % 2 == 0 ? stalled(4.9) : MemoryReading{});
  CHECK(full.held == configured);
  CHECK(full.steps_at.empty());
}

TEST_CASE("cache::pressure: high pressure takes half of what is held at once, and half again while it lasts") {
  Full full;
  full.at(1000, stalled(10));
  CHECK(full.held == configured / 2);
  full.at(1009, stalled(100));
  CHECK(full.held == configured / 2);
  full.at(1010, stalled(10));
  CHECK(full.held == configured / 4);
  for (std::uint64_t at = 1011; at < 1200; ++at) full.at(at, stalled(50));
  CHECK(full.held == configured / 16);  // what is left would not help anybody
}

TEST_CASE("cache::pressure: a cache that is not full gives half of what it holds") {
  const PressureState state = decide({}, stalled(30), configured, 90, 0);
  CHECK(bound_of(state, stalled(30), configured) == 45);
}

TEST_CASE("cache::pressure: it comes back by doubling, up to what is configured") {
  Full full;
  full.at(0, stalled(20));
  full.at(10, stalled(20));
  REQUIRE(full.held == configured / 4);
  full.at(19, stalled(0));
  CHECK(full.held == configured / 4);
  full.at(20, stalled(0));
  CHECK(full.held == configured / 2);
  full.at(30, stalled(0));
  CHECK(full.held == configured);
  CHECK_FALSE(full.state.cap);
}

TEST_CASE("cache::pressure: between high and low nothing changes, in either direction") {
  Full full;
  for (std::uint64_t at = 0; at < 50; ++at) full.at(at, stalled(at % 2 == 0 ? 5 : 9.9));
  CHECK(full.held == configured);
  full.at(50, stalled(11));
  for (std::uint64_t at = 51; at < 100; ++at) full.at(at, stalled(at % 2 == 0 ? 5 : 9.9));
  CHECK(full.held == configured / 2);
  CHECK(full.steps_at.size() == 1);
}

TEST_CASE("cache::pressure: whatever the readings do, at most one step in ten seconds") {
  Full full;
  for (std::uint64_t at = 0; at < 1000; ++at) full.at(at, stalled(at % 3 == 0 ? 80 : 0));
  for (std::size_t i = 1; i < full.steps_at.size(); ++i) CHECK(full.steps_at[i] - full.steps_at[i - 1] >= 10);
  CHECK(full.steps_at.size() > 10);
}

TEST_CASE("cache::pressure: a group that is nearly full is pressure, until it is clearly not") {
  Full full;
  full.at(0, group(100'000, 95'000));
  CHECK(full.held == configured / 2);
  full.at(10, group(100'000, 90'000));
  CHECK(full.held == configured / 2);
  full.at(11, group(100'000, 84'000));
  CHECK(full.held == configured);
}

TEST_CASE("cache::pressure: never more than a quarter of the group's limit") {
  CHECK(bound_of({}, group(1000, 10), configured) == 250);
  CHECK(bound_of({}, group(1'000'000, 10), configured) == configured);
}

TEST_CASE("cache::pressure: each threshold, from the step before") {
  struct Case {
    std::optional<std::uint64_t> cap;
    MemoryReading reading;
    std::uint64_t held;
    std::optional<std::uint64_t> expected;
    bool steps;
  };
  const auto of_both = [](double percent, std::uint64_t used) { return MemoryReading{percent, GroupUse{100, used}}; };
  const Case cases[] = {
      {{}, stalled(9.99), 1000, {}, false},  {{}, stalled(10), 1000, 500, true},
      {{}, group(100, 94), 1000, {}, false}, {{}, group(100, 95), 1000, 500, true},
      {{}, stalled(10), 7, 3, true},  // below what is the least later
      {800, stalled(10), 2000, 400, true},   {800, stalled(10), 600, 300, true},
      {150, stalled(10), 600, 100, true},  // a sixteenth
      {101, stalled(10), 600, 100, true},    {100, stalled(10), 600, 100, false},
      {3, stalled(10), 600, 3, false},       {400, stalled(4.99), 0, 800, true},
      {400, stalled(5), 0, 400, false},      {400, group(100, 84), 0, 800, true},
      {400, group(100, 85), 0, 400, false},  {400, of_both(0, 85), 0, 400, false},
      {400, of_both(5, 0), 0, 400, false},   {400, of_both(10, 0), 800, 200, true},
      {400, of_both(0, 95), 800, 200, true}, {3, stalled(0), 0, 100, true},
      {50, stalled(0), 0, 100, true},        {51, stalled(0), 0, 102, true},
      {799, stalled(0), 0, 1598, true},      {800, stalled(0), 0, {}, true},
  };
  for (const Case& each : cases) {
    CAPTURE(each.cap.value_or(0), each.held, each.reading.stalled_percent.value_or(-1));
    const PressureState before{each.cap, std::uint64_t{5}};
    const std::uint64_t now = 10 * second + 5;
    const PressureState after = decide(before, each.reading, configured, each.held, now);
    CHECK(after.cap == each.expected);
    CHECK(after.step_ns == (each.steps ? now : 5));
    const PressureState early = decide(before, each.reading, configured, each.held, now - 1);
    CHECK(early.cap == each.cap);
    CHECK(early.step_ns == 5);
  }
}

TEST_CASE("cache::pressure: what is not known is no pressure, however low the thresholds") {
  PressureRules rules;
  rules.stalled_high = 0.5, rules.stalled_low = 0.25;
  CHECK_FALSE(decide({}, {}, configured, 1000, 0, rules).cap);
  CHECK_FALSE(decide({800, {}}, {}, configured, 1000, 0, rules).cap);
}

TEST_CASE("cache::pressure: the bound is the least of the three") {
  CHECK(bound_of({700, {}}, {}, configured) == 700);
  CHECK(bound_of({2000, {}}, {}, configured) == configured);
  CHECK(bound_of({700, {}}, group(4000, 0), configured) == 700);
  CHECK(bound_of({700, {}}, group(2000, 0), configured) == 500);
}

TEST_CASE("cache::pressure: a look is due four times a second, for one of those who ask") {
  MemoryPressure pressure({"/nonexistent", "/nonexistent", "/nonexistent"});
  CHECK(pressure.is_due(7 * second));
  CHECK_FALSE(pressure.is_due(7 * second));
  CHECK_FALSE(pressure.is_due(7 * second + 249'999'999));
  CHECK(pressure.is_due(7 * second + 250'000'000));
  CHECK(pressure.bound(configured, 10, 7 * second) == configured);
}

TEST_CASE("cache::pressure: the cache gives up half of its programs when the next one comes, and not those in use") {
  Workplace place;
  SyntheticDevice device;
  const auto stalls = place.temporary.path() / "stalls";
  const std::string high = "some avg10=35.00 avg60=0.00 avg300=0.00 total=0\n";
  const auto cache = TieredCache::create({{&place.log, LogLevel::info}, place.config}, {}, {stalls, "/none", "/none"});
  REQUIRE(cache);
  std::vector<ProgramHandle> in_use;
  for (int i = 0; i < 40; ++i) {
    const auto got = acquire(**cache, std::to_string(i), device);
    if (i < 4) in_use.push_back(got->program);
  }
  REQUIRE((*cache)->stats().programs_in_memory == 40);
  overwrite(stalls, std::as_bytes(std::span(high)));
  // The cache looks at the files four times a second; it may hold more by then.
  std::uint64_t most = 40;
  for (int i = 100; (*cache)->stats().evictions == 0; ++i) {
    REQUIRE(i < 100'000);
    REQUIRE(acquire(**cache, std::to_string(i), device));
    most = std::max(most, (*cache)->stats().programs_in_memory);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK((*cache)->stats().programs_in_memory <= most / 2 + 1);
  for (int i = 0; i < 4; ++i) CHECK(acquire(**cache, std::to_string(i), device)->tier == Tier::memory);
  CHECK((*cache)->stats().evictions > 0);
  CHECK(device.false_bytes == 0);
}

TEST_CASE("cache::pressure: trim_memory() gives half back where nothing is loaded or built, and not what is in use") {
  Workplace place;
  SyntheticDevice device;
  const auto stalls = place.temporary.path() / "stalls";
  const auto stalled_for = [&](const std::string& percent) {
    const std::string text = "some avg10=" + percent + " avg60=0.00 avg300=0.00 total=0\n";
    overwrite(stalls, std::as_bytes(std::span(text)));
  };
  stalled_for("0.00");
  const auto cache = TieredCache::create({{&place.log, LogLevel::info}, place.config}, {}, {stalls, "/none", "/none"});
  REQUIRE(cache);
  std::vector<ProgramHandle> in_use;
  for (int i = 0; i < 40; ++i) {
    const auto got = acquire(**cache, std::to_string(i), device);
    if (i < 4) in_use.push_back(got->program);
  }
  const auto heed = [&] {
    // Longer than lies between two looks.
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    (*cache)->trim_memory();
    return (*cache)->stats().programs_in_memory;
  };
  CHECK(heed() == 40);
  stalled_for("35.00");
  for (int i = 0; i < 40; ++i) CHECK(acquire(**cache, std::to_string(i), device)->tier == Tier::memory);
  CHECK((*cache)->stats().programs_in_memory == 40);  // a hit does not look
  CHECK(heed() == 20);
  for (int i = 0; i < 4; ++i) CHECK(acquire(**cache, std::to_string(i), device)->tier == Tier::memory);
  CHECK(device.builds == 40);
  CHECK(device.loads == 0);
}

}  // namespace
}  // namespace kiln::test
