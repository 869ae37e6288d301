// What a generator keeps of what was tuned: beside a busy machine, of foreign winners, and where nothing can be
// written.
#include "dynamic_shaders/generator.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <string>
#include <vector>

#include "dynamic_shaders/sample_specs.hpp"
#include "dynamic_shaders/tuner/tuning_database.hpp"
#include "dynamic_shaders/variants.hpp"

namespace kiln::dynamic_shaders {
namespace {

// Every run of a variant takes 3 ms, but for those that are listed.
class EvenBench final : public VariantBench {
 public:
  Result<VariantSamples> measure(std::string_view variant, std::uint32_t runs,
                                 std::chrono::nanoseconds) noexcept override {
    asked.emplace_back(variant);
    const auto own = times.find(variant);
    VariantSamples samples;
    samples.wall_ns.assign(runs, own == times.end() ? 3'000'000 : own->second);
    samples.device_ns = samples.wall_ns;
    samples.contention = contention;
    if (const auto group = groups.find(variant); group != groups.end()) samples.agreement = group->second;
    return samples;
  }

  std::map<std::string, std::uint64_t, std::less<>> times;
  std::map<std::string, std::uint32_t, std::less<>> groups;
  double contention = 0;
  std::vector<std::string> asked;
};

Conv2dSpec small_conv() {
  Conv2dSpec spec;
  spec.c = spec.k = 16, spec.h = spec.w = 12, spec.r = spec.s = 3, spec.pad_y = spec.pad_x = 1;
  return spec;
}

// Another machine's winner of small_conv(): direct/plain.
std::string their_winners() {
  TuningRecord record;
  record.device = device_digest(sample_device());
  record.spec = canonical_text(small_conv());
  record.variant = "direct/plain", record.verdict = Verdict::winner, record.when = 1700000000;
  const auto plan = plan_of(small_conv(), sample_device(), Dialect::glsl, "direct/plain");
  REQUIRE(plan.has_value());
  record.source = source_digest(*plan, sample_device());
  record.wall_ns = record.device_ns = {1'000'000};
  return "kiln-tuning 1\n" + to_line(record);
}

Result<TuneOutcome> tuned_by(Generator& generator, EvenBench& bench, bool audit, bool again = false) {
  TuneOptions options;
  options.again = again;
  options.audit = audit;
  return generator.tune(small_conv(), sample_device(), Dialect::glsl, bench, options);
}

}  // namespace

TEST_CASE(
    "dynamic_shaders::generator: on a busy machine what was never tuned goes for a clear gain, a winner does not") {
  Generator generator;
  EvenBench bench;
  bench.contention = 0.5;
  bench.times["direct/plain"] = 1'000'000;
  const auto first = tuned_by(generator, bench, false);
  REQUIRE(first.has_value());
  CHECK(first->variant == "direct/plain");
  CHECK(first->decision == TuneDecision::faster);
  CHECK(first->incumbent != "direct/plain");
  bench.times["direct/plain"] = 9'000'000;
  const auto again = tuned_by(generator, bench, false, true);
  REQUIRE(again.has_value());
  CHECK(again->variant == "direct/plain");
  CHECK(again->decision == TuneDecision::busy);
}

TEST_CASE(
    "dynamic_shaders::generator: a foreign winner that fails its measurement is kept as what it was found to be") {
  const auto exported = [](const EvenBench& like) {
    Generator generator;
    REQUIRE(generator.merge_foreign(their_winners(), sample_device())->taken == 1);
    CHECK_THAT(generator.exported(), Catch::Contains("\tforeign\t"));
    EvenBench bench;
    bench.times = like.times, bench.groups = like.groups;
    REQUIRE(tuned_by(generator, bench, true).has_value());
    CHECK(bench.asked.size() == 2);
    CHECK(bench.asked.front() == "direct/plain");
    return generator.exported();
  };
  EvenBench differing, slow, good;
  differing.groups["direct/plain"] = 2;
  slow.times["direct/plain"] = 3'000'001;
  CHECK_THAT(exported(differing),
             Catch::Contains("\toutvoted\t") && Catch::Contains("its output differs from that of"));
  CHECK_THAT(exported(slow), Catch::Contains("\tmeasured\t") && !Catch::Contains("takes"));
  CHECK_THAT(exported(good), Catch::Contains("\twinner\t"));  // no slower than what serves
}

TEST_CASE("dynamic_shaders::generator: nothing foreign to accept changes nothing") {
  Generator generator;
  const std::uint64_t before = generator.revision();
  CHECK(generator.accept_foreign(sample_device()).value() == 0);
  CHECK(generator.revision() == before);
  REQUIRE(generator.merge_foreign(their_winners(), sample_device())->taken == 1);
  const std::uint64_t merged = generator.revision();
  CHECK(generator.accept_foreign(sample_device()).value() == 1);
  CHECK(generator.revision() > merged);
  CHECK(generator.accept_foreign(sample_device()).value() == 0);
}

TEST_CASE("dynamic_shaders::generator: what cannot be written is told by each that would write") {
  Generator generator("/proc/nowhere");
  EvenBench bench;
  const auto merged = generator.merge_foreign(their_winners(), sample_device());
  REQUIRE_FALSE(merged.has_value());
  CHECK(merged.error().code == StatusCode::io);
  const auto audited = tuned_by(generator, bench, true);
  REQUIRE_FALSE(audited.has_value());
  CHECK(audited.error().code == StatusCode::io);
  const auto tuned = tuned_by(generator, bench, false);
  REQUIRE_FALSE(tuned.has_value());
  CHECK(tuned.error().code == StatusCode::io);
  Generator other("/proc/nowhere");
  REQUIRE_FALSE(other.merge_foreign(their_winners(), sample_device()).has_value());
  const auto accepted = other.accept_foreign(sample_device());
  REQUIRE_FALSE(accepted.has_value());
  CHECK(accepted.error().code == StatusCode::io);
  const auto imported = Generator("/proc/nowhere").merge(their_winners());
  REQUIRE_FALSE(imported.has_value());
  CHECK(imported.error().code == StatusCode::io);
}

TEST_CASE("dynamic_shaders::drift: a winner whose device has no clock is never told of, one of a nanosecond is") {
  const auto told = [](std::uint64_t won_ns) {
    DriftWatch watch(std::chrono::nanoseconds(0));
    bool any = false;
    for (int i = 0; i < 9; ++i) {
      any = watch.drifts("d", GemmSpec{1, 2, 3}, 0, "fast", 9000, 0, [won_ns] {
        return DriftWatch::Winner{"fast", won_ns};
      }) || any;
    }
    return any;
  };
  CHECK_FALSE(told(0));
  CHECK(told(1));
}

}  // namespace kiln::dynamic_shaders
