// Audits of winners on a bench that answers what the test says.
#include "dynamic_shaders/generator.hpp"

#include <kiln/program.hpp>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "dynamic_shaders/sample_specs.hpp"

namespace kiln::dynamic_shaders {
namespace {

namespace fs = std::filesystem;

class SaidBench final : public VariantBench {
 public:
  Result<VariantSamples> measure(std::string_view variant, std::uint32_t runs,
                                 std::chrono::nanoseconds) noexcept override {
    asked.emplace_back(variant);
    if (!failure.ok()) return failure;
    VariantSamples samples;
    for (std::uint32_t run = 0; run < runs; ++run) samples.wall_ns.push_back(wall_ns + run);
    samples.device_ns = samples.wall_ns;
    return samples;
  }
  std::uint64_t wall_ns = 0;
  Status failure;
  std::vector<std::string> asked;
};

struct Fixture {
  fs::path folder;
  Conv2dSpec spec;
  DeviceInfo device = sample_device();
  SaidBench bench;

  Fixture() {
    std::string name = (fs::temp_directory_path() / "kiln-audit-XXXXXX").string();
    folder = mkdtemp(name.data());
    spec.c = spec.k = 16;
    spec.h = spec.w = 12;
    spec.r = spec.s = 3;
    spec.pad_y = spec.pad_x = 1;
  }
  ~Fixture() { fs::remove_all(folder); }

  // direct/plain won with 1 ms, give or take.
  void remember_winner(const std::string& source = {}) {
    TuningRecord won;
    won.device = device_digest(device);
    won.spec = canonical_text(spec);
    won.variant = "direct/plain";
    won.verdict = Verdict::winner;
    won.when = 1700000000;
    won.source = source;
    if (source.empty()) {
      const auto plan = Generator().generate_variant(spec, device, Dialect::glsl, won.variant);
      for (const Pass& pass : plan->passes) won.source += key_of(pass.source, device, {}).digest.hex().substr(0, 16);
    }
    for (std::uint64_t i = 0; i < 15; ++i) won.wall_ns.push_back(990'000 + i * 1'500);
    won.device_ns = won.wall_ns;
    REQUIRE(TuningDatabase(folder / "tuning.tsv").put({won}).ok());
  }
  TuneOutcome audit() {
    Generator generator(folder);
    TuneOptions options;
    options.audit = true;
    auto outcome = generator.tune(spec, device, Dialect::glsl, bench, options);
    INFO((outcome ? std::string() : outcome.error().text()));
    REQUIRE(outcome.has_value());
    return std::move(*outcome);
  }
  std::string kept() {
    return TuningDatabase(folder / "tuning.tsv").winner(device_digest(device), canonical_text(spec))->why;
  }
};

}  // namespace

TEST_CASE("dynamic_shaders::audit: a winner holds within a quarter, is stale beyond it, and can hold again") {
  Fixture f;
  f.remember_winner();
  f.bench.wall_ns = 1'200'000;
  CHECK(f.audit().stale.empty());
  CHECK(f.kept().empty());
  f.bench.wall_ns = 1'400'000;
  const TuneOutcome slow = f.audit();
  CHECK(slow.variant == "direct/plain");
  CHECK(slow.wall_ns == 1'400'004);
  CHECK(slow.recorded_wall_ns == 1'000'500);
  CHECK_THAT(slow.stale, Catch::Contains("1.400 ms") && Catch::Contains("when tuned 1.000 ms"));
  CHECK(f.kept() == slow.stale);
  f.bench.wall_ns = 900'000;
  CHECK(f.audit().stale.empty());
  CHECK(f.kept().empty());
  CHECK(f.bench.asked == std::vector<std::string>(3, "direct/plain"));
}

TEST_CASE("dynamic_shaders::audit: wrong results, hangs, crashes and changed sources make a winner stale") {
  Fixture f;
  f.remember_winner();
  for (const Status& failure : {corrupt("differs"), Status{StatusCode::timeout, "hangs"},
                                Status{StatusCode::device_lost, "ended its process"}}) {
    f.bench.failure = failure;
    CHECK_THAT(f.audit().stale, Catch::Contains(failure.message));
    CHECK_THAT(f.kept(), Catch::Contains(failure.message));
  }
  f.bench.asked.clear();
  f.remember_winner("of another day");
  CHECK_THAT(f.audit().stale, Catch::Contains("sources have changed"));
  CHECK(f.bench.asked.empty());
}

TEST_CASE("dynamic_shaders::audit: what the bench cannot do says nothing of the winner; nothing tuned is told") {
  Fixture f;
  TuneOptions options;
  options.audit = true;
  Generator none(f.folder);
  const auto nothing = none.tune(f.spec, f.device, Dialect::glsl, f.bench, options);
  REQUIRE_FALSE(nothing.has_value());
  CHECK(nothing.error().code == StatusCode::not_found);
  f.remember_winner();
  f.bench.failure = unavailable("no process can be started");
  Generator generator(f.folder);
  CHECK(generator.tune(f.spec, f.device, Dialect::glsl, f.bench, options).error().code == StatusCode::unavailable);
  CHECK(f.kept().empty());
  REQUIRE(generator.tuning() != nullptr);
  CHECK(generator.tuning()->tuned(f.device) == std::vector<KernelSpec>{f.spec});
  DeviceInfo other = f.device;
  other.driver_identity.emplace_back("version", "another");
  CHECK(generator.tuning()->tuned(other).empty());
}

TEST_CASE("dynamic_shaders::tuning_database: an older winner from elsewhere does not displace the one here") {
  Fixture f;
  f.remember_winner();
  TuningDatabase here(f.folder / "tuning.tsv");
  TuningRecord theirs = *here.winner(device_digest(f.device), canonical_text(f.spec));
  const TuningRecord ours = theirs;
  theirs.variant = "direct/blocked:theirs";
  TuningDatabase there({});
  for (const std::uint64_t when : {ours.when - 1, ours.when + 1}) {
    theirs.when = when;
    REQUIRE(there.put({theirs}).ok());
    const auto merged = here.merge(there.text());
    REQUIRE(merged.has_value());
    CHECK(merged->taken == 1);
    const std::string winner = here.winner(ours.device, ours.spec)->variant;
    CHECK(winner == (when < ours.when ? ours.variant : theirs.variant));
  }
  const auto again = here.merge(there.text());
  CHECK(again->taken == 0);
  CHECK(again->older == 1);
  CHECK(here.merge("kiln-tuning 7\n").error().code == StatusCode::corrupt);
}

TEST_CASE("dynamic_shaders::audit: a winner that runs slowly again and again becomes stale without an audit") {
  Fixture f;
  f.remember_winner();
  Generator generator(f.folder, false, nullptr, std::chrono::nanoseconds(0));
  REQUIRE(generator.generate(f.spec, f.device, Dialect::glsl)->variant == "direct/plain");
  Measurement slow;
  slow.first_run = true;
  slow.device_ns = 2'000'000;
  for (int i = 0; i < 20; ++i) generator.record(f.spec, f.device, "direct/plain", slow);
  CHECK(f.kept().empty());  // a first run is no measure
  slow.first_run = false;
  slow.contended = true;
  for (int i = 0; i < 20; ++i) generator.record(f.spec, f.device, "direct/plain", slow);
  CHECK(f.kept().empty());  // nor is one beside other work
  slow.contended = false;
  slow.batch = 3;
  for (int i = 0; i < 20; ++i) generator.record(f.spec, f.device, "direct/plain", slow);
  CHECK(f.kept().empty());  // nor the time of three jobs
  slow.batch = 1;
  CHECK(generator.tuning()->state(f.spec, f.device) == TuningState::tuned);
  for (int i = 0; i < 8; ++i) generator.record(f.spec, f.device, "direct/plain", slow);
  CHECK_THAT(f.kept(), Catch::Contains("runs in a row took 2000000 ns"));
  CHECK(generator.tuning()->state(f.spec, f.device) == TuningState::stale);
  CHECK(generator.generate(f.spec, f.device, Dialect::glsl)->variant == "direct/plain");  // it goes on serving

  // Tuned again, it is measured anew, and the mark is gone.
  f.bench.wall_ns = 2'000'000;
  TuneOptions options;
  options.budget = std::chrono::milliseconds(1);
  REQUIRE(generator.tune(f.spec, f.device, Dialect::glsl, f.bench, options).has_value());
  CHECK(std::ranges::count(f.bench.asked, "direct/plain") >= 1);
  CHECK(generator.tuning()->state(f.spec, f.device) == TuningState::tuned);
}

TEST_CASE("dynamic_shaders::state: untuned, tuned by another process, and what has nothing to choose from") {
  Fixture f;
  Generator generator(f.folder);
  CHECK(generator.tuning()->state(f.spec, f.device) == TuningState::untuned);
  CHECK(generator.tuning()->state(UserKernelSpec{}, f.device) == TuningState::fixed);
  UserKernelSpec open;
  open.parameters.push_back({"TILE", {"8", "16"}});
  CHECK(generator.tuning()->state(open, f.device) == TuningState::untuned);
  const std::uint64_t revision = generator.revision();
  f.remember_winner();  // by a database of its own, as another process would
  CHECK(generator.tuning()->state(f.spec, f.device) == TuningState::tuned);
  CHECK(generator.revision() > revision);  // what was planned before is planned again
  const std::uint64_t known = generator.revision();
  CHECK(generator.tuning()->state(f.spec, f.device) == TuningState::tuned);
  CHECK(generator.revision() == known);
}

}  // namespace kiln::dynamic_shaders
