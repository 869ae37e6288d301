// A power cut at any moment: what processes write below a cache folder is recorded, call by call, and the folder is
// built as a cut may leave it. A cache serves from each such folder what is whole, counts what is not, and goes on.
#include "core/cache/powercut/crash_states.hpp"
#include "core/cache/powercut/recording.hpp"
#include "core/cache/powercut/recovery.hpp"
#include "core/cache/workplace.hpp"
#include "support/in_child.hpp"
#include "support/test_length.hpp"

#include <kiln/cache_admin.hpp>

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <functional>

namespace kiln::test {
namespace {

// 50 ms on an idle machine. A hundred times as much on one whose cores are shared, under a sanitizer.
constexpr double most_opening_ms = 50 * 100;

// An entry holds the text twice, as part of its key and as its program: these are of one sector, of some, and of pages.
const TestProgram small = program_of("small", 60), middle = program_of("middle", 900),
                  large = program_of("large", 3500), other = program_of("other", 1500);

struct Machine {
  CacheConfig config;
  SyntheticDevice device;

  std::unique_ptr<TieredCache> open() const {
    auto cache = TieredCache::create({{}, config});
    if (!cache) throw std::runtime_error(cache.error().text());
    return std::move(*cache);
  }
  void get(ProgramCache& cache, const TestProgram& program) {
    const auto got = ask(cache, program, device);
    if (!got || text_of(*got) != program.text) throw std::runtime_error(program.name + " was not served");
  }
  void get(ProgramCache& cache, std::initializer_list<const TestProgram*> programs) {
    for (const TestProgram* program : programs) get(cache, *program);
  }
  std::filesystem::path file_of(const TestProgram& program) const {
    const std::string name = program.key(device).digest.hex() + ".bin";
    for (const auto& entry : std::filesystem::recursive_directory_iterator(config.directory)) {
      if (entry.path().filename() == name) return entry.path();
    }
    throw std::runtime_error(program.name + " is not stored");
  }
};

struct Scenario {
  const char* name;
  First first;
  std::function<void(Machine&)> before;  // safe on disk
  std::function<void(Machine&)> work;    // what is recorded
};

void first_use(Machine& machine) {
  const auto cache = machine.open();
  machine.get(*cache, {&small, &large, &small});
}

void store_three(Machine& machine) { machine.get(*machine.open(), {&small, &middle, &large}); }

// Hits, an entry that the disk damaged, one that is replaced under its name, a new one, and what is told at the end.
void later_use(Machine& machine) {
  const int file = ::open(machine.file_of(middle).c_str(), O_WRONLY | O_CLOEXEC);
  const bool damaged = ftruncate(file, 512) == 0;
  close(file);
  if (!damaged) throw std::runtime_error("an entry cannot be cut short");
  const auto cache = machine.open();
  machine.get(*cache, {&small, &middle});
  machine.device.build_number = 2;
  machine.device.load_answers = StatusCode::device_lost;  // says nothing of the entry: built anew, stored in its place
  machine.get(*cache, large);
  machine.device.load_answers = StatusCode::ok;
  machine.get(*cache, other);
}

void leave_pending(Machine& machine) {
  machine.get(*machine.open(), small);
  machine.config.auto_save = false;
  machine.get(*machine.open(), {&middle, &large});
  machine.config.auto_save = true;
  machine.get(*machine.open(), middle);  // waits, and is stored
}

void set_aside_and_persist(Machine& machine) {
  machine.config.auto_save = false;
  {
    const auto cache = machine.open();
    machine.get(*cache, {&small, &other});
    if (!cache->persist()) throw std::runtime_error("nothing was persisted");
  }
  if (!persist_cache(machine.config, {})) throw std::runtime_error("what waited was not persisted");
}

void die_loading(Machine& machine) {
  store_three(machine);
  const ChildEnd end = in_child([&]() -> std::string {
    machine.device.on_load = [](const KernelSource&) { raise(SIGKILL); };
    machine.get(*machine.open(), large);
    return "lives";
  });
  if (end.signal != SIGKILL) throw std::runtime_error("no process died: " + end.said);
}

// One is set aside because a process died of it, and others have to go for what is stored.
void over_the_bound(Machine& machine) {
  std::uint64_t bytes = 0;
  for (const TestProgram* one : {&small, &middle, &large}) bytes += std::filesystem::file_size(machine.file_of(*one));
  machine.config.max_disk = bytes * 5 / 4;
  machine.device.build_number = 3;
  const auto cache = machine.open();
  machine.get(*cache, {&large, &small, &other});
}

const std::array scenarios{
    Scenario{"a folder is used first", First::asked_for, [](Machine&) {}, first_use},
    Scenario{"a folder is used again", First::asked_for, store_three, later_use},
    Scenario{"programs are set aside and persisted", First::asked_for, leave_pending, set_aside_and_persist},
    Scenario{"the same, persisted again at first", First::persisted, leave_pending, set_aside_and_persist},
    Scenario{"a process had died, and others have to go", First::asked_for, die_loading, over_the_bound},
};

Recording record_scenario(const Scenario& scenario) {
  const CacheTestFolder place;
  Machine machine;
  machine.config = config_below(place.path());
  scenario.before(machine);
  return record(place.path(), [&]() -> std::string {
    Machine working;
    working.config = machine.config;
    scenario.work(working);
    return {};
  });
}

Exploration how_far() {
  if (is_long()) return {};
  Exploration some;
  some.one_of = 40;
  return some;
}

void meet(const Scenario& scenario) {
  const Recording recorded = record_scenario(scenario);
  if (!recorded.why_not.empty()) {
    WARN("skipped: " << recorded.why_not);
    return;
  }
  REQUIRE(recorded.wrong == "");
  Recovery recovery({small, middle, large, other}, recorded.before, recorded.operations);
  int wrong = 0;
  const auto check = [&](const CrashState& state) {
    const std::string complaint = recovery.check(state.image, scenario.first);
    if (complaint.empty() || ++wrong > 5) return;
    UNSCOPED_INFO(text_of(state, recorded.operations) << ": " << complaint);
  };
  const Explored explored = explore(recorded.before, recorded.operations, how_far(), check);
  CHECK(wrong == 0);
  CHECK(recovery.longest_ms() <= most_opening_ms);
  CHECK(recovery.hits() > 0);
  CHECK(recovery.damaged() > 0);
  WARN(scenario.name << ": " << recorded.operations.size() << " operations, " << explored.combinations
                     << " combinations, " << explored.states << " states, " << explored.files_in_all_their_ways
                     << " of " << explored.files << " files in all their ways: " << recovery.hits() << " hits, "
                     << recovery.damaged() << " damaged, " << recovery.foreign() << " foreign, " << recovery.set_aside()
                     << " set aside; opened in at most " << recovery.longest_ms() << " ms");
}

TEST_CASE("cache::power_cut: every state that a cut may leave is served from, and mended") {
  for (const Scenario& scenario : scenarios) {
    DYNAMIC_SECTION(scenario.name) { meet(scenario); }
  }
}

}  // namespace
}  // namespace kiln::test
