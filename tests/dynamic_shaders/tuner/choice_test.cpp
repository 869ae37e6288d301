// Which variant serves, by what a database holds: winners, rejected ones, those of shapes nearby, those of other
// sources.
#include "dynamic_shaders/variants.hpp"

#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "dynamic_shaders/generator.hpp"
#include "dynamic_shaders/sample_specs.hpp"
#include "dynamic_shaders/space/variant_space.hpp"

namespace kiln::dynamic_shaders {
namespace {

const DeviceInfo& device() {
  static const DeviceInfo info = sample_device();
  return info;
}

TuningRecord record(const KernelSpec& spec, const std::string& variant, Verdict verdict) {
  TuningRecord record;
  record.device = device_digest(device());
  record.spec = record_spec(spec);
  record.variant = variant;
  record.verdict = verdict;
  record.when = 1700000000;
  record.source = source_digest(*plan_of(spec, device(), Dialect::glsl, variant), device());
  if (verdict != Verdict::rejected) record.wall_ns = record.device_ns = {1'000'000};
  if (verdict == Verdict::rejected) record.why = "wrong";
  return record;
}

std::string chosen(const KernelSpec& spec, TuningDatabase& database, std::string* by = nullptr) {
  const auto choice = choose(spec, device(), Dialect::glsl, database);
  REQUIRE(choice.has_value());
  if (by != nullptr) *by = choice->by;
  return choice->plan.variant;
}

Conv2dSpec layer(std::int64_t side) {
  Conv2dSpec spec = resnet_layer();
  spec.h = spec.w = side;
  return spec;
}

// A variant that the model does not choose but sees nothing against.
std::string second_best(const Conv2dSpec& spec) {
  const std::string own = default_variant(spec, device());
  for (const Candidate& each : conv_space(spec, device())) {
    if (each.variant != own) return each.variant;
  }
  return {};
}

}  // namespace

TEST_CASE("choice: a winner serves while its sources are those that won") {
  const Conv2dSpec spec = layer(28);
  const std::string own = default_variant(spec, device());
  TuningDatabase database({});
  CHECK(chosen(spec, database) == own);
  TuningRecord won = record(spec, second_best(spec), Verdict::winner);
  REQUIRE(database.put({won}).ok());
  std::string by;
  CHECK(chosen(spec, database, &by) == won.variant);
  CHECK(by == "tuned");
  won.why = "runs in a row took longer";  // slow, but right
  REQUIRE(database.put({won}).ok());
  CHECK(chosen(spec, database) == won.variant);
  won.source = "of another day";
  REQUIRE(database.put({won}).ok());
  CHECK(chosen(spec, database, &by) == own);
  CHECK(by == "cost model");
}

TEST_CASE("choice: the digest of a variant's sources includes the passes that prepare constants") {
  const Conv2dSpec spec = layer(28);
  std::size_t preparing = 0;
  for (const Candidate& each : conv_space(spec, device())) {
    auto plan = plan_of(spec, device(), Dialect::glsl, each.variant);
    if (!plan || plan->prepare.empty()) continue;
    ++preparing;
    const std::string before = source_digest(*plan, device());
    plan->prepare[0].source.text += " ";
    CHECK(source_digest(*plan, device()) != before);
  }
  CHECK(preparing != 0);
}

TEST_CASE("choice: what was rejected does not serve until its sources change") {
  for (const KernelSpec& spec : {KernelSpec(layer(28)), KernelSpec(GemmSpec{64, 96, 128})}) {
    TuningDatabase database({});
    const std::string own = chosen(spec, database);
    TuningRecord wrong = record(spec, own, Verdict::rejected);
    REQUIRE(database.put({wrong}).ok());
    const std::string next = chosen(spec, database);
    CHECK(next != own);
    CHECK_FALSE(next.ends_with("/plain"));
    wrong.source = "of another day";
    REQUIRE(database.put({wrong}).ok());
    CHECK(chosen(spec, database) == own);
  }
}

TEST_CASE("choice: where all of a space were rejected the plain variant serves") {
  const GemmSpec spec{16, 16, 16};
  TuningDatabase database({});
  std::vector<TuningRecord> all;
  for (const Candidate& each : gemm_space(spec, device())) all.push_back(record(spec, each.variant, Verdict::rejected));
  REQUIRE(database.put(all).ok());
  CHECK(chosen(spec, database) == "gemm/plain");
}

TEST_CASE("choice: the nearest shape's winner serves, where it was not rejected here and is of today") {
  const Conv2dSpec spec = layer(28), near = layer(30), far = layer(56);
  const std::string own = default_variant(spec, device());
  const std::string theirs = second_best(spec);
  REQUIRE(plan_of(near, device(), Dialect::glsl, theirs));
  TuningDatabase database({});
  TuningRecord won = record(near, theirs, Verdict::winner);
  REQUIRE(database.put({won, record(far, "direct/plain", Verdict::winner)}).ok());
  std::string by;
  CHECK(chosen(spec, database, &by) == theirs);
  CHECK(by == "the nearest tuned shape");
  REQUIRE(database.put({record(spec, theirs, Verdict::rejected)}).ok());
  CHECK(chosen(spec, database) == own);

  TuningDatabase other_day({});
  won.source = "of another day";
  REQUIRE(other_day.put({won}).ok());
  CHECK(chosen(spec, other_day) == own);

  TuningDatabase slow({});  // the model sees something against it
  REQUIRE(slow.put({record(near, "direct/plain", Verdict::winner)}).ok());
  CHECK(chosen(spec, slow) == own);

  TuningDatabase away({});  // more than four doublings
  Conv2dSpec other = near;
  other.n = 16;
  other.h = other.w = 60;
  REQUIRE(plan_of(other, device(), Dialect::glsl, theirs));
  REQUIRE(away.put({record(other, theirs, Verdict::winner)}).ok());
  CHECK(chosen(spec, away) == own);
}

TEST_CASE("choice: uses the winner of the nearest tuned shape, in any order of the database") {
  const Conv2dSpec spec = layer(28);
  const std::string own = default_variant(spec, device());
  const auto own_cost = predicted_run(spec, device(), own);
  REQUIRE(own_cost.has_value());
  using Sides = std::pair<std::int64_t, std::int64_t>;
  for (const Sides& sides : {Sides{30, 16}, Sides{24, 60}, Sides{30, 20}}) {
    const Conv2dSpec near = layer(sides.first), far = layer(sides.second);
    INFO("sides " << sides.first << " and " << sides.second);
    std::vector<std::string> others;  // that serve all three, and that the model sees nothing against
    for (const Candidate& each : conv_space(spec, device())) {
      if (others.size() == 2) break;
      if (each.variant == own || each.predicted > 1.2 * *own_cost) continue;
      if (plan_of(near, device(), Dialect::glsl, each.variant) && plan_of(far, device(), Dialect::glsl, each.variant)) {
        others.push_back(each.variant);
      }
    }
    REQUIRE(others.size() == 2);
    for (const bool swapped : {false, true}) {
      const std::string theirs = others[swapped ? 1 : 0], farther = others[swapped ? 0 : 1];
      TuningDatabase database({});
      REQUIRE(database.put({record(near, theirs, Verdict::winner), record(far, farther, Verdict::winner)}).ok());
      CHECK(chosen(spec, database) == theirs);
    }
  }
}

TEST_CASE("choice: a product of matrices is served by the nearest product's winner too") {
  const GemmSpec spec{64, 96, 128}, near{64, 96, 160};
  TuningDatabase none({});
  const std::string own = chosen(spec, none);
  std::string theirs;
  const double own_cost = *predicted_run(spec, device(), own);
  for (const Candidate& each : gemm_space(spec, device())) {
    if (each.variant != own && each.predicted <= 1.25 * own_cost) theirs = each.variant;
  }
  REQUIRE_FALSE(theirs.empty());
  TuningDatabase database({});
  REQUIRE(database.put({record(near, theirs, Verdict::winner)}).ok());
  std::string by;
  CHECK(chosen(spec, database, &by) == theirs);
  CHECK(by == "the nearest tuned shape");
  CHECK(distance(spec, near) == Approx(std::log2(160.0 / 128)));
}

TEST_CASE("choice: one more value of a parameter is one more variant to measure") {
  class CountingBench final : public VariantBench {
   public:
    Result<VariantSamples> measure(std::string_view variant, std::uint32_t runs,
                                   std::chrono::nanoseconds) noexcept override {
      asked.emplace_back(variant);
      VariantSamples samples;
      samples.wall_ns.assign(runs, variant == "user:TILE=16" ? 1000 : 2000);
      samples.device_ns = samples.wall_ns;
      samples.source_digest = source_digest(*plan_of(kernel, device(), Dialect::glsl, variant), device());
      return samples;
    }
    UserKernelSpec kernel;
    std::vector<std::string> asked;
  } bench;
  UserKernelSpec& kernel = bench.kernel;
  kernel.path = "tiled.comp";
  kernel.dialect = Dialect::glsl;
  kernel.entry = "main";
  kernel.text =
      "#version 430\nlayout(local_size_x = TILE) in;\nlayout(std430, binding = 0) buffer B { float b[]; };\n"
      "void main() { b[gl_GlobalInvocationID.x] += 1.0; }\n";
  kernel.bindings = {{Access::read_write, 4096}};
  kernel.grid = {1, 1, 1};
  kernel.parameters = {{"TILE", {"8", "16"}}};
  Generator generator;
  const auto first = generator.tune(kernel, device(), Dialect::glsl, bench, {});
  INFO((first ? std::string() : first.error().text()));
  REQUIRE(first.has_value());
  CHECK(first->variant == "user:TILE=16");
  CHECK(first->candidates == 2);
  CHECK(generator.generate(kernel, device(), Dialect::glsl)->variant == "user:TILE=16");

  kernel.parameters[0].texts.push_back("32");
  CHECK(generator.generate(kernel, device(), Dialect::glsl)->variant == "user:TILE=16");  // still a winner
  const auto second = generator.tune(kernel, device(), Dialect::glsl, bench, {});
  REQUIRE(second.has_value());
  CHECK(second->candidates == 1);
  CHECK(second->known == 2);

  TuneOptions audit;
  audit.audit = true;
  const auto audited = generator.tune(kernel, device(), Dialect::glsl, bench, audit);
  REQUIRE(audited.has_value());
  CHECK(audited->variant == "user:TILE=16");
  CHECK(audited->stale.empty());
  kernel.text += "// changed\n";
  CHECK(generator.tune(kernel, device(), Dialect::glsl, bench, audit).error().code == StatusCode::not_found);
}

TEST_CASE("choice: a user's winner that runs slowly again and again becomes stale") {
  UserKernelSpec kernel;
  kernel.path = "tiled.comp";
  kernel.dialect = Dialect::glsl;
  kernel.entry = "main";
  kernel.text = "#version 430\nlayout(local_size_x = TILE) in;\nvoid main() {}\n";
  kernel.grid = {1, 1, 1};
  kernel.parameters = {{"TILE", {"8", "16"}}};
  std::string name = (std::filesystem::temp_directory_path() / "kiln-choice-XXXXXX").string();
  const std::filesystem::path folder = mkdtemp(name.data());
  REQUIRE(TuningDatabase(folder / "tuning.tsv").put({record(kernel, "user:TILE=16", Verdict::winner)}).ok());
  Generator generator(folder, false, nullptr, std::chrono::nanoseconds(0));
  REQUIRE(generator.generate(kernel, device(), Dialect::glsl)->variant == "user:TILE=16");
  CHECK(generator.tuning()->state(kernel, device()) == TuningState::tuned);
  Measurement slow;
  slow.device_ns = 2'000'000;
  slow.batch = 1;
  for (int i = 0; i < 7; ++i) generator.record(kernel, device(), "user:TILE=16", slow);
  CHECK(generator.tuning()->state(kernel, device()) == TuningState::tuned);  // seven in a row are too few
  Measurement usual = slow;
  usual.device_ns = 1'000;
  generator.record(kernel, device(), "user:TILE=16", usual);
  for (int i = 0; i < 8; ++i) generator.record(kernel, device(), "user:TILE=8", slow);  // not the winner
  CHECK(generator.tuning()->state(kernel, device()) == TuningState::tuned);
  for (int i = 0; i < 8; ++i) generator.record(kernel, device(), "user:TILE=16", slow);
  CHECK(generator.tuning()->state(kernel, device()) == TuningState::stale);
  std::filesystem::remove_all(folder);
}

}  // namespace kiln::dynamic_shaders
