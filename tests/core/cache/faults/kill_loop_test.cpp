// Four processes on one folder, killed at random moments over and over: no wrong program is ever served, what was
// stored is there, and the folder opens as if nothing had happened.
#include "core/cache/process/shared.hpp"
#include "core/cache/workplace.hpp"
#include "support/in_child.hpp"
#include "support/test_length.hpp"

#include <catch2/catch.hpp>

#include <kiln/clock.hpp>

#include <algorithm>
#include <array>
#include <csignal>
#include <random>
#include <thread>

namespace kiln::test {
namespace {

constexpr int programs = 60;
constexpr int processes = 4;
// 50 ms on an idle machine. A hundred times as much on one whose cores are shared, under a sanitizer.
constexpr double most_reopening_ms = 50 * 100;

struct Ledger {
  std::array<std::atomic<bool>, programs> stored{};  // its build was answered, so it had been published
  std::atomic<int> wrong{0}, served{0};
};

// Asks for programs at random until it is killed.
std::string ask_for_ever(Workplace& place, Ledger& ledger, unsigned seed) {
  std::mt19937 random(seed);
  SyntheticDevice device;
  device.build_number = seed;  // what is built again may be stored again
  for (;;) {
    const auto cache = place.open();
    for (int i = 0; i < 200; ++i) {
      const auto program = static_cast<std::size_t>(random() % programs);
      const auto got = acquire(*cache, "program " + std::to_string(program), device);
      if (!got || text_of(*got) != "program " + std::to_string(program) || device.false_bytes != 0) ++ledger.wrong;
      if (got && got->tier == Tier::built) ledger.stored[program] = true;
      ++ledger.served;
    }
  }
}

TEST_CASE("cache::kill_loop: four processes killed at random moments: no wrong program, none lost") {
  Workplace place;
  place.config.max_programs = 5;  // so that the disk is asked again and again
  // No death is a program's fault, as a child would find out.
  place.trial = [](const ProgramKey&, const ProgramBinary&, const DeviceInfo&) {
    return TrialOutcome{TrialVerdict::good, {}};
  };
  Shared<Ledger> ledger;
  std::mt19937 random(7);
  const int kills = is_long() ? 1000 : 40;
  const auto start = [&] {
    const auto seed = static_cast<unsigned>(random());
    return std::make_unique<Child>([&place, &ledger, seed] { return ask_for_ever(place, *ledger, seed); });
  };
  std::array<std::unique_ptr<Child>, processes> running;
  std::ranges::generate(running, start);
  for (int kill = 0; kill < kills; ++kill) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 30'000));
    auto& one = running[random() % processes];
    one->kill(SIGKILL);
    const ChildEnd end = one->wait();
    if (end.signal != SIGKILL) FAIL("ended by itself: " << end.said);
    one = start();
  }
  for (auto& one : running) {
    one->kill(SIGKILL);
    CHECK(one->wait().signal == SIGKILL);
  }
  CHECK(ledger->wrong == 0);
  CHECK(ledger->served > kills);

  SyntheticDevice device;
  const std::uint64_t begin = now_ns();
  const auto cache = place.open();
  REQUIRE(acquire(*cache, "program 0", device));
  const double reopened_ms = static_cast<double>(now_ns() - begin) / 1e6;
  int stored = 0, lost = 0;
  for (int program = 0; program < programs; ++program) {
    if (!ledger->stored[static_cast<std::size_t>(program)]) continue;
    ++stored;
    const auto got = acquire(*cache, "program " + std::to_string(program), device);
    REQUIRE(got);
    if (program != 0 && got->tier != Tier::disk) ++lost;
  }
  CHECK(stored > programs / 2);
  CHECK(lost == 0);
  CHECK(reopened_ms <= most_reopening_ms);
  CHECK(device.false_bytes == 0);
  const RejectedCounts rejected = cache->stats().rejected;
  CHECK(rejected.corrupt + rejected.tampered + rejected.foreign + rejected.refused + rejected.quarantined == 0);
  WARN(kills << " kills, " << ledger->served << " requests served, reopened in " << reopened_ms << " ms, " << lost
             << " of " << stored << " lost");
}

}  // namespace
}  // namespace kiln::test
