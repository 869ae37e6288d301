// Processes that are killed (SIGKILL) while they push, pull or write back: what they leave is used by the next one, no
// program is another than its key says, and nothing that was stored is lost. The long form kills at 300 random points.
#include "core/cache/shared/sharing.hpp"
#include "support/syscall_killer.hpp"
#include "support/test_length.hpp"

#include <catch2/catch.hpp>

#include <unistd.h>

#include <random>
#include <set>

namespace kiln::test {
namespace {

constexpr std::size_t programs = 8;

std::vector<std::string> texts_from(char first) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < programs; ++i) texts.push_back(std::string(1, first) + " " + std::to_string(i));
  return texts;
}

// A machine whose remote is a folder, so that the child alone makes the server's files.
struct KilledMachine : SharingMachine {
  CacheTestFolder share;

  KilledMachine() { write_to("file://" + share.path().string()); }

  std::set<std::filesystem::path> programs_here() const {
    const auto files = this->files(".bin");
    return {files.begin(), files.end()};
  }
  // Everything is loaded or built, and is the program that was asked for.
  void check_serves(const std::vector<std::string>& texts) {
    const auto cache = open();
    for (const std::string& text : texts) {
      const auto acquired = acquire(*cache, text, device);
      REQUIRE(acquired.has_value());
      CHECK(text_of(*acquired) == text);
    }
    CHECK(device.false_bytes == 0);
    CHECK(cache->stats().rejected.tampered == 0);
  }
};

struct Sums {
  std::size_t kills = 0, lost = 0;
};

// Kills `work` of a new machine at random points; then checks it.
template <class Prepare, class Work, class Check>
Sums kill_at_random(const char* what, unsigned seed, const Prepare& prepare, const Work& work, const Check& check) {
  Sums sums;
  std::size_t calls = 0;
  {
    KilledMachine machine;
    prepare(machine);
    const KilledRun whole = run_and_kill([&] { work(machine); }, {});
    if (!whole.is_traced) {
      WARN("skipped: ptrace is not permitted here");
      return sums;
    }
    REQUIRE(whole.status == 0);
    calls = whole.calls;
    check(machine);
  }
  std::mt19937 random(seed);
  const std::size_t rounds = is_long() ? 100 : 4;
  for (std::size_t round = 0; round < rounds; ++round) {
    const std::size_t point = 1 + random() % calls;
    CAPTURE(what, round, point, calls);
    KilledMachine machine;
    prepare(machine);
    const auto before = machine.programs_here();
    const KilledRun killed = run_and_kill([&] { work(machine); }, {.call = point});
    sums.kills += killed.was_killed;
    const auto after = machine.programs_here();
    for (const auto& file : before) sums.lost += !after.contains(file);
    check(machine);
  }
  return sums;
}

void check_sums(const Sums& sums) {
  CHECK(sums.lost == 0);
  CHECK(sums.kills >= (is_long() ? 60 : 1));  // threads make some runs shorter than the first
}

}  // namespace

TEST_CASE("killed sharing: a push that is killed loses nothing, and the next one completes it") {
  const auto texts = texts_from('a');
  check_sums(kill_at_random(
      "push", 1, [&](KilledMachine& machine) { machine.build(texts); },
      [](KilledMachine& machine) { static_cast<void>(machine.push()); },
      [&](KilledMachine& machine) {
        machine.check_serves(texts);
        const PushOutcome again = machine.push();
        CHECK(again.failure.ok());
        CHECK(again.bad.empty());
        CHECK(again.written + again.already == programs);
        SharingMachine reader;
        reader.read_from("file://" + machine.share.path().string(), machine);
        const PullOutcome pulled = reader.pull();
        CHECK(pulled.failure.ok());
        CHECK(pulled.refused.empty());
        CHECK(pulled.stored.programs == programs);
      }));
}

TEST_CASE("killed sharing: a pull that is killed loses nothing, and the next one completes it") {
  const auto own = texts_from('b'), theirs = texts_from('c');
  check_sums(kill_at_random(
      "pull", 2,
      [&](KilledMachine& machine) {
        machine.build(theirs);
        REQUIRE(machine.push().written == programs);
        std::filesystem::remove_all(machine.config.directory);
        machine.build(own);
      },
      [](KilledMachine& machine) { static_cast<void>(machine.pull()); },
      [&](KilledMachine& machine) {
        machine.check_serves(own);
        const PullOutcome again = machine.pull();
        CHECK(again.failure.ok());
        CHECK(again.refused.empty());
        CHECK(again.stored.programs + again.stored.programs_already == programs);
        const int before = machine.device.builds;
        machine.check_serves(theirs);
        CHECK(machine.device.builds == before);
      }));
}

TEST_CASE("killed sharing: a job that is killed while it writes back loses nothing, and others use what it wrote") {
  const auto own = texts_from('d'), fresh = texts_from('e');
  check_sums(kill_at_random(
      "write-back", 3, [&](KilledMachine& machine) { machine.build(own); },
      [&](KilledMachine& machine) {
        const auto cache = machine.open();
        for (const std::string& text : fresh) machine.build_and_run(*cache, text);
      },
      [&](KilledMachine& machine) {
        machine.check_serves(own);
        machine.check_serves(fresh);
        SharingMachine reader;
        reader.read_from("file://" + machine.share.path().string(), machine);
        const PullOutcome pulled = reader.pull();
        CHECK(pulled.failure.ok());
        CHECK(pulled.refused.empty());
        CHECK(pulled.stored.programs <= programs);
        // A later push writes what is missing.
        const PushOutcome pushed = machine.push();
        CHECK(pushed.failure.ok());
        CHECK(pushed.written + pushed.already == 2 * programs);
      }));
}

}  // namespace kiln::test
