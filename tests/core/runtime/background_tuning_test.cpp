// [generator] background: shapes that ran are tuned while no job runs; a job stops what is being measured.
#include "runtime/background_tuning.hpp"

#include "core/cache/workplace.hpp"
#include "core/runtime/runtime_fixture.hpp"
#include "support/happens.hpp"

#include <kiln/clock.hpp>

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace kiln::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Conv2dSpec shape_with(std::int64_t channels) {
  Conv2dSpec spec;
  spec.c = channels;
  spec.h = spec.w = 8;
  spec.k = 4;
  spec.r = spec.s = 3;
  return spec;
}

// What the tuning did, in order; and benches that take as long as the test says.
struct BenchScript {
  std::mutex mutex;
  std::condition_variable changed;
  milliseconds takes{1};
  bool paused = false;
  int measuring = 0, measured = 0, broken_off = 0, rests = 0, benches = 0;
  int looks = 0;                    // at what is kept of a shape
  int rests_before = 0;             // as of the last measurement's end
  std::vector<std::int64_t> tuned;  // channels of the shapes, as they were begun
  std::map<std::int64_t, TuningState> states;
  std::map<std::int64_t, Status> failures;
  bool busy = false;
  std::string name;  // of the last shape
  std::chrono::nanoseconds budget{0};
  std::uint64_t waited_ns = 0;  // of its bench

  template <class Number>
  Number read(Number BenchScript::*of) {
    const std::lock_guard lock(mutex);
    return this->*of;
  }
};

class SlowBench final : public PausableBench {
 public:
  explicit SlowBench(BenchScript& bench) : bench_(bench) {}
  Result<VariantSamples> measure(std::string_view, std::uint32_t runs, std::chrono::nanoseconds) noexcept override {
    std::unique_lock lock(bench_.mutex);
    ++bench_.measuring;
    bench_.changed.notify_all();
    const bool stopped = bench_.changed.wait_for(lock, bench_.takes, [&] { return bench_.paused; });
    --bench_.measuring;
    if (stopped) {
      ++bench_.broken_off;
      return cancelled("paused");
    }
    ++bench_.measured;
    bench_.rests_before = bench_.rests;
    VariantSamples samples;
    samples.wall_ns.assign(runs, 1000);
    samples.device_ns.assign(runs, 500);
    return samples;
  }
  void pause() noexcept override { set(true); }
  void resume() noexcept override { set(false); }
  void rest() noexcept override {
    const std::lock_guard lock(bench_.mutex);
    ++bench_.rests;
  }

 private:
  void set(bool paused) {
    const std::lock_guard lock(bench_.mutex);
    bench_.paused = paused;
    bench_.changed.notify_all();
  }
  BenchScript& bench_;
};

struct TuningBehind {
  BenchScript bench;
  TuningRules rules;
  std::filesystem::path turn_file;
  CollectedLog log;

  TuningBehind() {
    rules.share = 1;
    rules.quiet = rules.look = milliseconds(1);
    rules.patience = rules.between = milliseconds(20);
    rules.memory = {"/proc/none", "/proc/none", "/proc/none"};
  }
  std::unique_ptr<BackgroundTuning> start() {
    BackgroundTuning::Means means;
    const auto channels = [](const RanShape& shape) { return std::get<Conv2dSpec>(shape.spec).c; };
    means.state = [this, channels](const RanShape& shape) {
      const std::lock_guard lock(bench.mutex);
      ++bench.looks;
      const auto at = bench.states.find(channels(shape));
      return at == bench.states.end() ? TuningState::untuned : at->second;
    };
    means.bench = [this](const RanShape&) {
      const std::lock_guard lock(bench.mutex);
      ++bench.benches;
      return std::make_unique<SlowBench>(bench);
    };
    means.tune = [this, channels](const RanShape& shape, VariantBench& on,
                                  const TuneOptions& options) -> Result<TuneOutcome> {
      {
        const std::lock_guard lock(bench.mutex);
        bench.tuned.push_back(channels(shape));
        bench.name = options.name;
        bench.budget = options.budget;
        const auto failure = bench.failures.find(channels(shape));
        if (failure != bench.failures.end()) return failure->second;
      }
      for (const char* variant : {"a", "b"}) {
        if (options.stop->load()) return unavailable("stopped");
        const auto samples = on.measure(variant, 3, seconds(1));
        if (!samples) return samples.error();
        if (samples->wall_ns.size() != 3) return internal_error(std::to_string(samples->wall_ns.size()) + " samples");
        if (samples->device_ns != std::vector<std::uint64_t>{500, 500, 500}) return internal_error("no device times");
      }
      const std::lock_guard lock(bench.mutex);
      bench.waited_ns = on.waited_ns();
      bench.states[channels(shape)] = TuningState::tuned;
      TuneOutcome outcome;
      outcome.variant = "a";
      outcome.wall_ns = 2'500'000;
      outcome.candidates = 2;
      return outcome;
    };
    means.busy = [this] { return bench.read(&BenchScript::busy); };
    means.turn_file = turn_file;
    return std::make_unique<BackgroundTuning>(std::move(means), rules, Log{&log, LogLevel::info});
  }
  // A job of the shape that took so long.
  static void run(BackgroundTuning& tuning, std::int64_t channels, std::uint64_t ns) {
    const BackgroundTuning::Job job(&tuning);
    tuning.ran("opengl:0", shape_with(channels), "job", ns);
  }
};

}  // namespace

TEST_CASE("runtime::background_tuning: what ran is tuned once, what took most time first", "[runtime][tuning]") {
  TuningBehind behind;
  const auto tuning = behind.start();
  {
    const BackgroundTuning::Job job(tuning.get());  // until it ends nothing is chosen
    TuningBehind::run(*tuning, 1, 100);
    std::this_thread::sleep_for(milliseconds(50));
    TuningBehind::run(*tuning, 2, 300);
    TuningBehind::run(*tuning, 3, 200);
    TuningBehind::run(*tuning, 3, 200);
  }
  REQUIRE(happens([&] { return tuning->state().tuned == 3; }));
  CHECK(behind.bench.tuned == std::vector<std::int64_t>{3, 2, 1});
  CHECK(behind.bench.measured == 6);
  CHECK(behind.bench.read(&BenchScript::name) == "job");
  CHECK(behind.bench.read(&BenchScript::budget) == seconds(30));
  const std::string shape = canonical_text(shape_with(3));
  CHECK(behind.log.said(shape + " on opengl:0: tuned, a takes 2500 us; 2 variants measured") == 1);
  CHECK(tuning->state().asked);
  const int looks = behind.bench.read(&BenchScript::looks);
  TuningBehind::run(*tuning, 2, 300);
  REQUIRE(happens([&] { return behind.bench.read(&BenchScript::looks) > looks; }));
  CHECK(happens([&] { return tuning->state().waiting == 0; }));
  std::this_thread::sleep_for(milliseconds(50));  // many times what tuning it again would take
  CHECK(tuning->state().tuned == 3);
  CHECK(tuning->state().failed == 0);
}

TEST_CASE("runtime::background_tuning: a job stops a measurement before it begins, and it is taken again afterwards",
          "[runtime][tuning]") {
  TuningBehind behind;
  behind.bench.takes = seconds(600);
  const std::uint64_t begun = now_ns();
  const auto tuning = behind.start();
  TuningBehind::run(*tuning, 1, 100);
  REQUIRE(happens([&] { return behind.bench.read(&BenchScript::measuring) == 1; }));
  {
    const BackgroundTuning::Job job(tuning.get());
    CHECK(behind.bench.read(&BenchScript::paused));
    REQUIRE(happens([&] { return behind.bench.read(&BenchScript::broken_off) == 1; }));
    {
      const std::lock_guard lock(behind.bench.mutex);
      behind.bench.takes = milliseconds(1);
    }
    std::this_thread::sleep_for(milliseconds(50));  // many times what it would need
    CHECK(behind.bench.read(&BenchScript::measured) == 0);
    CHECK(behind.bench.read(&BenchScript::measuring) == 0);
    CHECK(behind.bench.read(&BenchScript::paused));
  }
  REQUIRE(happens([&] { return tuning->state().tuned == 1; }));
  CHECK(behind.bench.measured == 4);  // the first run by run, since it was broken off; the other at once
  CHECK(behind.bench.broken_off == 1);
  const std::uint64_t waited_ns = behind.bench.read(&BenchScript::waited_ns);
  CHECK(waited_ns >= 25'000'000);  // at least half of the job
  CHECK(waited_ns <= now_ns() - begun);
}

TEST_CASE("runtime::background_tuning: its end breaks off what is being measured", "[runtime][tuning]") {
  TuningBehind behind;
  behind.bench.takes = seconds(600);
  auto tuning = behind.start();
  TuningBehind::run(*tuning, 1, 100);
  REQUIRE(happens([&] { return behind.bench.read(&BenchScript::measuring) == 1; }));
  tuning.reset();
  CHECK(behind.bench.broken_off == 1);
  CHECK(behind.bench.measured == 0);
}

TEST_CASE("runtime::background_tuning: it takes no more than its share of the time, and its process rests meanwhile",
          "[runtime][tuning]") {
  TuningBehind behind;
  behind.rules.share = 1e-2;
  behind.bench.takes = seconds(1);
  const auto tuning = behind.start();
  TuningBehind::run(*tuning, 1, 100);
  REQUIRE(happens([&] { return behind.bench.read(&BenchScript::measured) == 1; }));
  REQUIRE(
      happens([&] { return behind.bench.read(&BenchScript::rests) > behind.bench.read(&BenchScript::rests_before); }));
  CHECK(behind.bench.read(&BenchScript::measured) == 1);  // the second has to wait for 100 s
  CHECK(tuning->state().spent_ns >= 990'000'000);
  CHECK(tuning->state().tuned == 0);
}

TEST_CASE(
    "runtime::background_tuning: it waits while the runtime builds, while memory is short, and while jobs follow one "
    "another",
    "[runtime][tuning]") {
  TuningBehind behind;
  SECTION("building") {
    behind.bench.busy = true;
    const auto tuning = behind.start();
    TuningBehind::run(*tuning, 1, 100);
    std::this_thread::sleep_for(milliseconds(50));
    CHECK(behind.bench.read(&BenchScript::benches) == 0);
    {
      const std::lock_guard lock(behind.bench.mutex);
      behind.bench.busy = false;
    }
    REQUIRE(happens([&] { return tuning->state().tuned == 1; }));
  }
  SECTION("memory") {
    const CacheTestFolder folder;
    behind.rules.memory.stalls = folder.path() / "stalls";
    const auto memory_stalls = [&](const char* percent) {
      std::ofstream(behind.rules.memory.stalls) << "some avg10=" << percent << " avg60=0.00 avg300=0.00 total=0\n";
    };
    memory_stalls("50.00");
    const auto tuning = behind.start();
    TuningBehind::run(*tuning, 1, 100);
    std::this_thread::sleep_for(milliseconds(50));
    CHECK(behind.bench.read(&BenchScript::benches) == 0);
    CHECK(tuning->state().waiting == 1);
    memory_stalls("0.00");
    REQUIRE(happens([&] { return tuning->state().tuned == 1; }));
  }
  SECTION("jobs") {
    behind.rules.quiet = seconds(600);
    const auto tuning = behind.start();
    for (int i = 0; i < 20; ++i) {
      TuningBehind::run(*tuning, 1, 100);
      std::this_thread::sleep_for(milliseconds(2));
    }
    CHECK(behind.bench.read(&BenchScript::benches) == 0);
    CHECK(tuning->state().waiting == 1);
  }
}

TEST_CASE("runtime::background_tuning: what cannot be measured, or has nothing to choose from, is left for good",
          "[runtime][tuning]") {
  TuningBehind behind;
  behind.bench.failures[1] = unavailable("no device");
  behind.bench.states[2] = TuningState::fixed;
  const auto tuning = behind.start();
  TuningBehind::run(*tuning, 1, 100);
  TuningBehind::run(*tuning, 2, 100);
  REQUIRE(happens([&] { return tuning->state().failed == 1 && tuning->state().waiting == 0; }));
  for (int i = 0; i < 5; ++i) {  // beyond `between`, after which those that ran are looked at again
    TuningBehind::run(*tuning, 1, 100);
    TuningBehind::run(*tuning, 2, 100);
    std::this_thread::sleep_for(milliseconds(20));
  }
  CHECK(behind.bench.read(&BenchScript::tuned) == std::vector<std::int64_t>{1});
  CHECK(tuning->state().failed == 1);
  CHECK(behind.log.said(canonical_text(shape_with(1)) + " on opengl:0 is not tuned: no device") == 1);
}

TEST_CASE("runtime::background_tuning: a winner that went stale is tuned again once it ran again",
          "[runtime][tuning]") {
  TuningBehind behind;
  const auto tuning = behind.start();
  TuningBehind::run(*tuning, 1, 100);
  REQUIRE(happens([&] { return tuning->state().tuned == 1; }));
  {
    const std::lock_guard lock(behind.bench.mutex);
    behind.bench.states[1] = TuningState::stale;
  }
  std::this_thread::sleep_for(milliseconds(100));
  CHECK(tuning->state().tuned == 1);  // nobody runs it any more
  TuningBehind::run(*tuning, 1, 100);
  REQUIRE(happens([&] { return tuning->state().tuned == 2; }));
}

TEST_CASE("runtime::background_tuning: of processes on one folder one tunes", "[runtime][tuning]") {
  RuntimeFixture place;  // for its folder
  TuningBehind behind;
  behind.turn_file = place.folder() / "turn.lock";
  UniqueFd other(open(behind.turn_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  REQUIRE(flock(other.get(), LOCK_EX | LOCK_NB) == 0);
  const auto tuning = behind.start();
  TuningBehind::run(*tuning, 1, 100);
  std::this_thread::sleep_for(milliseconds(60));
  CHECK(behind.bench.read(&BenchScript::benches) == 0);
  CHECK(tuning->state().waiting == 1);
  other = UniqueFd();
  REQUIRE(happens([&] { return tuning->state().tuned == 1; }));
  other = UniqueFd(open(behind.turn_file.c_str(), O_RDWR | O_CLOEXEC));
  CHECK(happens([&] { return flock(other.get(), LOCK_EX | LOCK_NB) == 0; }));  // it was given back
}

TEST_CASE("runtime::background_tuning: work of its own waits for an idle moment, and ends with it",
          "[runtime][tuning]") {
  TuningBehind behind;
  auto tuning = behind.start();
  std::atomic<int> worked{0};
  std::optional<BackgroundTuning::Job> job(std::in_place, tuning.get());
  std::thread waiting([&] {
    const Status status = tuning->when_idle([&] {
      ++worked;
      return ok_status();
    });
    if (!status.ok()) worked = -1;
  });
  std::this_thread::sleep_for(milliseconds(30));
  CHECK(worked == 0);
  job.reset();
  waiting.join();
  CHECK(worked == 1);
}

TEST_CASE("runtime::shape_times: at most 4096 shapes are followed", "[runtime][tuning]") {
  ShapeTimes times;
  for (std::int64_t channels = 1; channels <= 4097; ++channels) times.ran("cpu", shape_with(channels), "job", 10);
  CHECK(times.waiting() == 4096);
  times.ran("cpu", shape_with(4097), "job", 1000);
  times.ran("cpu", shape_with(7), "job", 1);  // of those that are followed
  const auto next = times.next();
  REQUIRE(next.has_value());
  CHECK(std::get<Conv2dSpec>(next->spec).c == 7);
  const RanShape unknown{"cpu", shape_with(4097), "job"};
  times.settle(unknown);
  times.give_up(unknown);
  CHECK(times.waiting() == 4096);
}

TEST_CASE("runtime::shape_times: shapes of devices and specs are told apart, and users' kernels left out",
          "[runtime][tuning]") {
  ShapeTimes times;
  CHECK_FALSE(times.next().has_value());
  times.ran("opengl:0", UserKernelSpec{}, "mine", 1'000'000);
  CHECK(times.waiting() == 0);
  times.ran("opengl:0", shape_with(1), "first", 10);
  times.ran("opengl:1", shape_with(1), "second", 20);
  times.ran("opengl:0", GemmSpec{1, 2, 3}, "third", 5);
  times.ran("opengl:0", shape_with(1), "renamed", 15);
  CHECK(times.waiting() == 3);
  auto next = times.next();
  REQUIRE(next.has_value());
  CHECK(next->device == "opengl:0");
  CHECK(next->name == "first");
  times.settle(*next);
  next = times.next();
  CHECK(next->device == "opengl:1");
  times.give_up(*next);
  times.settle(*times.next());
  CHECK_FALSE(times.next().has_value());
  times.wait_again();
  CHECK_FALSE(times.next().has_value());  // none of them ran since
  for (const char* device : {"opengl:0", "opengl:1"}) times.ran(device, shape_with(1), "again", 1);
  times.wait_again();
  CHECK(times.waiting() == 1);  // the other was given up
  CHECK(times.next()->device == "opengl:0");
}

}  // namespace kiln::test
