// What a trace is told of the choice of a variant: what spoke for it, with its figures.
#include "dynamic_shaders/generator.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "dynamic_shaders/sample_specs.hpp"
#include "dynamic_shaders/variants.hpp"
#include "support/told_trace.hpp"

namespace kiln::dynamic_shaders {
namespace {

Conv2dSpec conv_of_side(std::int64_t side) {
  Conv2dSpec spec;
  spec.c = spec.k = 16;
  spec.h = spec.w = side;
  spec.r = spec.s = 3;
  spec.pad_y = spec.pad_x = 1;
  return spec;
}

void remember_winner_of(const KernelSpec& spec, const std::string& variant, const std::filesystem::path& folder) {
  TuningRecord won;
  won.device = device_digest(sample_device());
  won.spec = canonical_text(spec);
  won.variant = variant;
  won.verdict = Verdict::winner;
  won.when = 1700000000;
  won.source = source_digest(*plan_of(spec, sample_device(), Dialect::glsl, variant), sample_device());
  won.wall_ns = won.device_ns = {2'000'000, 1'500'000, 1'600'000};
  REQUIRE(TuningDatabase(folder / "tuning.tsv").put({won}).ok());
}

}  // namespace

TEST_CASE("dynamic_shaders::choice: the cost model, a tuned winner and the nearest shape's each say so to a trace") {
  std::string name = (std::filesystem::temp_directory_path() / "kiln-choice-XXXXXX").string();
  const std::filesystem::path folder = mkdtemp(name.data());
  const Conv2dSpec tuned = conv_of_side(12), near = conv_of_side(13);
  const auto chosen = [&](const KernelSpec& spec) {
    test::ToldTrace trace;
    Generator generator(folder, true, &trace);
    const auto plan = generator.generate(spec, sample_device(), Dialect::glsl);
    REQUIRE(plan.has_value());
    REQUIRE(trace.events().size() == 1);
    const test::ToldEvent event = trace.events().front();
    CHECK(event.area == TraceArea::tuner);
    CHECK(event.name == "choose variant");
    CHECK(event.words.at("variant") == plan->variant);
    CHECK(event.words.at("spec") == canonical_text(spec));
    return event;
  };
  const test::ToldEvent by_model = chosen(tuned);
  CHECK(by_model.words.at("by") == "cost model");
  CHECK(by_model.numbers.at("model_cost") > 0);
  remember_winner_of(tuned, by_model.words.at("variant"), folder);
  const test::ToldEvent chosen_by = chosen(tuned);
  CHECK(chosen_by.words.at("by") == "tuned");
  CHECK(chosen_by.numbers.at("tuned_wall_ms") == Approx(1.6));
  const test::ToldEvent by_nearest = chosen(near);
  CHECK(by_nearest.words.at("by") == "the nearest tuned shape");
  CHECK(by_nearest.numbers.at("doublings_apart") > 0);
  CHECK(by_nearest.numbers.at("model_cost") > 0);
  std::filesystem::remove_all(folder);
}

}  // namespace kiln::dynamic_shaders
