// [generator] background: shapes that ran are tuned while no job runs; a job stops what is being measured.
#include "runtime/background_tuning.hpp"

#include "core/cache/workplace.hpp"
#include "core/runtime/runtime_fixture.hpp"

#include <kiln/clock.hpp>
#include <kiln/kernel_generator.hpp>

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

// Of a generator that measures nothing.
class SilentBench final : public VariantBench {
 public:
  Result<VariantSamples> measure(std::string_view, std::uint32_t, std::chrono::nanoseconds) noexcept override {
    return internal_error("nothing is measured here");
  }
};

// Patience for two busy cores, not a bound on how fast it is.
template <class Condition>
bool happens(const Condition& condition) {
  for (int i = 0; i < 20'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return false;
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

// What a FastVariant generator was asked to tune.
struct AskedToTune {
  std::mutex mutex;
  std::vector<std::string> shapes;  // device and spec
  std::string name;
  Status published;
  TuningState state = TuningState::untuned;

  std::size_t count() {
    const std::lock_guard lock(mutex);
    return shapes.size();
  }
};

// Plans as another generator does. Its variant "fast" wins, whatever is measured.
class FastVariant final : public KernelGenerator, public TunableGenerator {
 public:
  FastVariant(std::unique_ptr<KernelGenerator> plans, AskedToTune& asked)
      : plans_(std::move(plans)), asked_(asked), store_(asked) {}

  // Makes it the generator of the fixture.
  static void serve(RuntimeFixture& fixture, AskedToTune& asked) {
    const GeneratorFactory make = fixture.registry.generators("forwarder").value().front()->make;
    const Status added = fixture.registry.add_generator(
        "test", "fast_variant", {Dialect::library},
        [make, &asked](const GeneratorContext& context) -> Result<std::unique_ptr<KernelGenerator>> {
          auto plans = make(context);
          if (!plans) return plans;
          return std::unique_ptr<KernelGenerator>(std::make_unique<FastVariant>(std::move(*plans), asked));
        });
    REQUIRE(added.ok());
    fixture.config.generator.name = "fast_variant";
  }

  std::span<const Dialect> dialects() const noexcept override { return dialects_; }
  Result<KernelPlan> generate(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect) noexcept override {
    return plans_->generate(spec, device, dialect);
  }
  Result<KernelPlan> generate_variant(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect,
                                      std::string_view variant) noexcept override {
    return plans_->generate_variant(spec, device, dialect, variant);
  }
  void record(const KernelSpec&, const DeviceInfo&, std::string_view, const Measurement&) noexcept override {}
  Result<TuneOutcome> tune(const KernelSpec& spec, const DeviceInfo& device, Dialect, VariantBench&,
                           const TuneOptions& options) noexcept override {
    Status published = options.publish("fast");
    const std::lock_guard lock(asked_.mutex);
    asked_.shapes.push_back(device.id + " " + canonical_text(spec));
    asked_.name = options.name;
    asked_.published = published;
    asked_.state = TuningState::tuned;
    if (!published.ok()) return published;
    TuneOutcome outcome;
    outcome.variant = "fast";
    return outcome;
  }
  TuningStore* tuning() noexcept override { return &store_; }

 private:
  class Store final : public TuningStore {
   public:
    explicit Store(AskedToTune& asked) : asked_(asked) {}
    std::vector<KernelSpec> tuned(const DeviceInfo&) override { return {GemmSpec{1, 2, 3}}; }
    TuningState state(const KernelSpec&, const DeviceInfo&) noexcept override {
      const std::lock_guard lock(asked_.mutex);
      return asked_.state;
    }
    std::string exported() noexcept override { return {}; }
    Result<MergedTuning> merge(std::string_view) noexcept override { return MergedTuning(); }

   private:
    AskedToTune& asked_;
  };

  const std::unique_ptr<KernelGenerator> plans_;
  AskedToTune& asked_;
  Store store_;
  Dialect dialects_[1] = {Dialect::library};
};

}  // namespace

TEST_CASE("runtime: a spec is tuned on its device, and the programs of its winner are there afterwards",
          "[runtime][tuning]") {
  AskedToTune asked;
  RuntimeFixture fixture;
  FastVariant::serve(fixture, asked);
  Runtime& runtime = fixture.runtime();
  SilentBench bench;
  RunRequest request = small_conv2d();
  TuneOptions options;
  options.name = "layer";
  const auto outcome = runtime.tune(request.spec, "beta", bench, options);
  REQUIRE(outcome);
  CHECK(outcome->variant == "fast");
  CHECK(asked.shapes == std::vector<std::string>{"beta " + canonical_text(request.spec)});
  CHECK(asked.name == "layer");
  CHECK(fixture.controls("beta").builds == 1);
  request.device = "beta";
  request.variant = "fast";
  CHECK(runtime.run(request).tier == Tier::memory);
  const auto tuned = runtime.tuned("beta");
  REQUIRE(tuned);
  REQUIRE(tuned->size() == 1);
  CHECK(((*tuned)[0] == KernelSpec(GemmSpec{1, 2, 3})));

  std::string published;
  options.publish = [&](const std::string& variant) {
    published = variant;
    return unavailable("no room");
  };
  const auto refused = runtime.tune(request.spec, "beta", bench, options);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().text() == "unavailable: no room");
  CHECK(published == "fast");
  CHECK(fixture.controls("beta").builds == 1);

  Conv2dSpec wrong;
  CHECK(runtime.tune(wrong, "beta", bench, {}).error().code == StatusCode::invalid_argument);
  CHECK(runtime.tune(request.spec, "gamma", bench, {}).error().code == StatusCode::not_found);
  fixture.controls("alpha").fail_build = true;
  Conv2dSpec other = std::get<Conv2dSpec>(request.spec);
  other.activation = Activation::relu;  // of which beta has built nothing
  CHECK(runtime.tune(other, "alpha", bench, {}).error().code == StatusCode::invalid_argument);
  UserKernelSpec kernel;
  kernel.path = "own.cl";
  kernel.text = "own";
  kernel.dialect = Dialect::opencl_c;
  CHECK_THAT(runtime.tune(kernel, "beta", bench, {}).error().message, Catch::Contains("cannot run kernel own.cl"));
  CHECK(asked.shapes.size() == 3);

  RuntimeFixture plain;  // whose generator has nothing to choose from
  CHECK(plain.runtime().tune(small_gemm().spec, "beta", bench, {}).error().text() ==
        "unsupported: gemm: the generator has no variants to tune");
}

TEST_CASE("runtime: with [generator] background a shape that ran is tuned behind the jobs", "[runtime][tuning]") {
  AskedToTune asked;
  RuntimeFixture fixture;
  FastVariant::serve(fixture, asked);
  fixture.config.generator.background = true;
  fixture.config.selector.exploration = 1;
  Runtime& runtime = fixture.runtime();
  CHECK(runtime.background_tuning().asked);
  RunRequest request = small_conv2d();
  request.device = "alpha";
  request.variant = "asked for";  // which says nothing of what usually runs
  REQUIRE(runtime.run(request).status.text() == "ok");
  CHECK(runtime.background_tuning().waiting == 0);
  request.variant.clear();
  REQUIRE(runtime.run(request).status.text() == "ok");
  CHECK(runtime.background_tuning().waiting + asked.count() >= 1);
  REQUIRE(happens([&] { return runtime.background_tuning().tuned == 1; }));
  const std::lock_guard lock(asked.mutex);
  CHECK(asked.shapes == std::vector<std::string>{"alpha " + canonical_text(request.spec)});
  CHECK(asked.name == "small");
  CHECK(asked.published.ok());
  CHECK(fixture.controls("alpha").builds == 3);
}

TEST_CASE("runtime: where nothing can be tuned in the background the log says why", "[runtime][tuning]") {
  AskedToTune asked;
  RuntimeFixture fixture;
  FastVariant::serve(fixture, asked);
  fixture.config.generator.background = true;
  CollectedLog log;
  fixture.log = {&log, LogLevel::warning};
  std::string why;
  SECTION("a folder that is only read") {
    fixture.config.cache.read_only = true;
    why = "no writable cache folder is set";
  }
  SECTION("no folder") {
    fixture.config.cache.directory.clear();
    why = "no writable cache folder is set";
  }
  SECTION("no share of the time") {
    fixture.config.selector.exploration = 0;
    why = "selector.exploration is 0, expected more than 0";
  }
  CHECK_FALSE(fixture.runtime().background_tuning().asked);
  CHECK(log.said("[generator] background: nothing is tuned: " + why) == 1);
}

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
  CHECK(waited_ns >= 50'000'000);  // the job
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

TEST_CASE("runtime::background_tuning: it stands back while the runtime builds, and while jobs follow on one another",
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

TEST_CASE("runtime::background_tuning: it stands back while memory is short", "[runtime][tuning]") {
  const CacheTestFolder folder;
  TuningBehind behind;
  behind.rules.memory.stalls = folder.path() / "stalls";
  const auto memory_stalls = [&](const char* percent) {
    const auto written = folder.path() / "stalls.new";  // as a whole: nobody reads a part of it
    std::ofstream(written) << "some avg10=" << percent << " avg60=0.00 avg300=0.00 total=0\n"
                           << "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
    std::filesystem::rename(written, behind.rules.memory.stalls);
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

TEST_CASE("runtime::background_tuning: a runtime whose generator keeps nothing says why nothing is tuned",
          "[runtime][tuning]") {
  struct Said final : LogSink {
    void write(LogLevel, std::string_view, std::string_view message) noexcept override { text += message; }
    std::string text;
  } said;
  RuntimeFixture fixture;
  fixture.config.generator.background = true;
  fixture.log = {&said, LogLevel::warning};
  RunRequest request = small_conv2d();
  request.device = "alpha";
  CHECK(fixture.runtime().run(request).status.ok());
  CHECK_FALSE(fixture.runtime().background_tuning().asked);
  CHECK_THAT(said.text, Catch::Contains("[generator] background") && Catch::Contains("stores measurements"));
}

TEST_CASE("runtime: tuning that is asked for waits for another process that does, and ends where it is told to") {
  RuntimeFixture fixture;
  fixture.config.device.prefer = "beta";
  const std::filesystem::path& folder = fixture.config.cache.directory;
  const KernelSpec spec = small_conv2d().spec;
  SilentBench bench;
  const auto tune = [&](const std::atomic<bool>* stop) {
    TuneOptions options;
    options.stop = stop;
    return fixture.runtime().tune(spec, "beta", bench, options).error().code;
  };
  CHECK_FALSE(is_asked_turn_taken(folder));
  std::atomic<bool> stop{true};
  {
    const auto other = take_asked_turn(folder, nullptr, {});  // a lock of another opening, as another process has
    REQUIRE(other.has_value());
    CHECK(is_asked_turn_taken(folder));
    CHECK(tune(&stop) == StatusCode::cancelled);
  }
  CHECK_FALSE(is_asked_turn_taken(folder));
  CHECK(tune(&stop) == StatusCode::unsupported);  // its turn came: the fixture's generator has nothing to choose from
  CHECK_FALSE(is_asked_turn_taken(folder));
}

TEST_CASE("runtime: whoever waits for another process that tunes says so once", "[runtime][tuning]") {
  const CacheTestFolder temporary;
  const std::filesystem::path folder = temporary.path() / "cache";
  CollectedLog log;
  auto other = take_asked_turn(folder, nullptr, {&log, LogLevel::info});
  REQUIRE(other);
  CHECK(*other);
  CHECK(log.warnings().empty());
  Result<UniqueFd> turn = unavailable("not asked for");
  std::thread waiting([&] { turn = take_asked_turn(folder, nullptr, {&log, LogLevel::info}); });
  const bool said = happens([&] { return !log.warnings().empty(); });
  std::this_thread::sleep_for(milliseconds(200));  // in which it looks several times
  *other = UniqueFd();
  waiting.join();
  CHECK(said);
  REQUIRE(turn);
  CHECK(*turn);
  CHECK(log.warnings() ==
        std::vector<std::string>{"waiting, because another process tunes for folder " + folder.string()});

  for (const char* nowhere : {"", "/proc/none"}) {
    const auto none = take_asked_turn(nowhere, nullptr, {&log, LogLevel::info});
    REQUIRE(none);
    CHECK_FALSE(*none);
    CHECK_FALSE(is_asked_turn_taken(nowhere));
  }
  CHECK(log.warnings().size() == 1);
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
