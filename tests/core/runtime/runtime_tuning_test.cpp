// Tuning through a runtime: when it is asked for, and in the background ([generator] background).
#include "runtime/background_tuning.hpp"
#include "runtime/warmup.hpp"

#include "core/cache/workplace.hpp"
#include "core/runtime/runtime_fixture.hpp"
#include "support/happens.hpp"

#include <kiln/kernel_generator.hpp>

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace kiln::test {
namespace {

// Of a generator that measures nothing.
class SilentBench final : public VariantBench {
 public:
  Result<VariantSamples> measure(std::string_view, std::uint32_t, std::chrono::nanoseconds) noexcept override {
    return internal_error("nothing is measured here");
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
  const bool tuned = happens([&] { return runtime.background_tuning().tuned == 1; });
  if (!tuned && memory_is_short(read_memory({}), true, {})) {
    WARN("skipped: the memory of this machine is short, and nothing is tuned meanwhile");
    return;
  }
  REQUIRE(tuned);
  const std::lock_guard lock(asked.mutex);
  CHECK(asked.shapes == std::vector<std::string>{"alpha " + canonical_text(request.spec)});
  CHECK(asked.name == "small");
  CHECK(asked.published.ok());
  CHECK(fixture.controls("alpha").builds == 3);
}

TEST_CASE("runtime: where nothing can be tuned in the background the log says why", "[runtime][tuning]") {
  AskedToTune asked;
  RuntimeFixture fixture;
  fixture.config.generator.background = true;
  CollectedLog log;
  fixture.log = {&log, LogLevel::warning};
  std::string why;
  SECTION("no generator that keeps measurements") { why = "no loaded generator stores measurements"; }
  SECTION("a folder that is only read") {
    FastVariant::serve(fixture, asked);
    fixture.config.cache.read_only = true;
    why = "no writable cache folder is set";
  }
  SECTION("no folder") {
    FastVariant::serve(fixture, asked);
    fixture.config.cache.directory.clear();
    why = "no writable cache folder is set";
  }
  SECTION("no share of the time") {
    FastVariant::serve(fixture, asked);
    fixture.config.selector.exploration = 0;
    why = "selector.exploration is 0, expected more than 0";
  }
  CHECK_FALSE(fixture.runtime().background_tuning().asked);
  CHECK(log.said("[generator] background: nothing is tuned: " + why) == 1);
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
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // in which it looks several times
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

}  // namespace kiln::test
