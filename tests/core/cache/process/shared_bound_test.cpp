// The bound on disk among processes: those that write to one folder at one time keep to it together.
#include "core/cache/process/shared.hpp"
#include "core/cache/workplace.hpp"
#include "support/in_child.hpp"

#include <catch2/catch.hpp>

#include <kiln/clock.hpp>

#include <algorithm>
#include <atomic>
#include <thread>

namespace kiln::test {
namespace {

constexpr std::uint64_t bound = 600'000;
constexpr int processes = 8;
constexpr int rounds = 5;

// Of each process. In the first round each looks for the first time. What it writes in one of the others is less than
// the eighth after which it would look by itself, and that of all together is nearly the bound.
constexpr int programs_in(int round) { return round == 0 ? 1 : 7; }

struct Turns {
  std::atomic<int> round{0}, done{0};
};

// Programs of others go while this looks.
std::uint64_t bytes_below(const Workplace& place) {
  std::uint64_t bytes = 0;
  std::error_code gone;
  std::filesystem::recursive_directory_iterator each(place.config.directory, gone), end;
  for (; !gone && each != end; each.increment(gone)) {
    std::error_code none;
    const std::string extension = each->path().extension();
    const auto size = each->file_size(none);
    if (!none && (extension == ".bin" || extension == ".meta")) bytes += size;
  }
  return bytes;
}

std::string write_in_turns(Workplace& place, Turns& turns, int process) {
  SyntheticDevice device;
  const auto cache = place.open();
  for (int round = 0; round < rounds; ++round) {
    while (turns.round <= round) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (int i = 0; i < programs_in(round); ++i) {
      const std::string name = std::to_string(process) + "." + std::to_string(round) + "." + std::to_string(i);
      if (!acquire(*cache, std::string(3000, 'x') + name, device)) return "a program was not served";
    }
    ++turns.done;
  }
  return cache->stats().rejected.corrupt == 0 ? "" : "an entry was damaged";
}

TEST_CASE("cache::shared_bound: eight processes that write three times the bound keep to it together") {
  Workplace place;
  place.config.max_disk = bound;
  place.config.compression = "none";
  std::uint64_t entry = 0;
  {
    SyntheticDevice device;
    const auto cache = place.open();
    for (int i = 0; bytes_below(place) < bound / 4 * 3; ++i) {
      REQUIRE(acquire(*cache, std::string(3000, 'x') + std::to_string(i), device));
      if (i == 0) entry = bytes_below(place);
    }
  }
  REQUIRE(entry * processes * (programs_in(0) + (rounds - 1) * programs_in(1)) > 3 * bound);
  REQUIRE(entry * programs_in(1) < bound / 8);
  // An entry of each that it is writing, or could not tell the others within its patience: alone each would have gone
  // on for an eighth of the bound.
  const std::uint64_t most = bound + bound / 64 + processes * entry;
  Shared<Turns> turns;
  std::vector<std::unique_ptr<Child>> children;
  for (int process = 0; process < processes; ++process) {
    children.push_back(std::make_unique<Child>([&, process] { return write_in_turns(place, *turns, process); }));
  }
  std::uint64_t over_since_ns = 0, longest_over_ns = 0;
  for (int round = 0; round < rounds; ++round) {
    ++turns->round;
    over_since_ns = 0;
    const Deadline patience = Deadline::after(std::chrono::seconds(60));
    while (turns->done < (round + 1) * processes && !patience.passed()) {
      const std::uint64_t now = now_ns();
      if (bytes_below(place) <= most) {
        over_since_ns = 0;
      } else {
        if (over_since_ns == 0) over_since_ns = now;
        longest_over_ns = std::max(longest_over_ns, now - over_since_ns);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    REQUIRE(turns->done == (round + 1) * processes);
    CAPTURE(round);
    CHECK(bytes_below(place) <= most);  // at rest: nobody is going to look again before he writes
  }
  CHECK(longest_over_ns < 10'000'000'000);  // 1 s on an idle machine
  for (auto& child : children) CHECK(child->wait().said == "");
  CHECK(bytes_below(place) > bound / 2);
  CHECK(bytes_below(place) <= most);
  // One that was removed between the writing of its two files, of each.
  CHECK(place.files(".meta").size() <= place.files(".bin").size() + processes);
  CHECK(place.log.warnings().empty());
}

}  // namespace
}  // namespace kiln::test
