// What a program is for, in words: short, and nothing that differs is left out that people ask for. Which generator
// plans, how often it is asked, and what is remembered of work.
#include "runtime/planner.hpp"

#include "support/fixture_device.hpp"

#include <kiln/kernel_generator.hpp>

#include <catch2/catch.hpp>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace kiln;
using Catch::Matchers::Contains;

namespace {

KernelPlan plan_of_one_pass(const KernelSpec& spec, std::string variant) {
  KernelPlan plan;
  plan.variant = std::move(variant);
  plan.tensors = tensors_of(spec);
  Pass pass;
  pass.source.dialect = Dialect::library;
  pass.source.text = canonical_text(spec) + " " + plan.variant;
  pass.source.spec = spec;
  for (std::uint32_t i = 0; i < plan.tensors.size(); ++i) {
    pass.source.bindings.push_back(plan.tensors[i].role == TensorRole::output ? Access::write : Access::read);
    pass.bindings.push_back({BindingSource::tensor, i});
  }
  plan.passes.push_back(std::move(pass));
  return plan;
}

// What a TellingGenerator does, and what it was asked.
struct PlansTold {
  std::uint64_t revision = 1;
  int generated = 0, variants = 0;
  std::vector<KernelSpec> tuned;
};

// Has winners, but no plan of a product with n = 1.
class TellingGenerator final : public KernelGenerator, public TunableGenerator {
 public:
  TellingGenerator(PlansTold& told, bool keeps) : told_(told), store_(told), keeps_(keeps) {}

  std::span<const Dialect> dialects() const noexcept override { return dialects_; }
  Result<KernelPlan> generate(const KernelSpec& spec, const DeviceInfo&, Dialect) noexcept override {
    ++told_.generated;
    const auto* gemm = std::get_if<GemmSpec>(&spec);
    if (gemm != nullptr && gemm->n == 1) return unsupported("n is 1");
    return plan_of_one_pass(spec, "winner " + std::to_string(told_.revision));
  }
  Result<KernelPlan> generate_variant(const KernelSpec& spec, const DeviceInfo&, Dialect,
                                      std::string_view variant) noexcept override {
    ++told_.variants;
    return plan_of_one_pass(spec, std::string(variant));
  }
  std::uint64_t revision() const noexcept override { return told_.revision; }
  void record(const KernelSpec&, const DeviceInfo&, std::string_view, const Measurement&) noexcept override {}
  Result<TuneOutcome> tune(const KernelSpec&, const DeviceInfo&, Dialect, VariantBench&,
                           const TuneOptions&) noexcept override {
    return unsupported("nothing is tuned here");
  }
  TuningStore* tuning() noexcept override { return keeps_ ? &store_ : nullptr; }

 private:
  class Store final : public TuningStore {
   public:
    explicit Store(PlansTold& told) : told_(told) {}
    std::vector<KernelSpec> tuned(const DeviceInfo&) override { return told_.tuned; }
    TuningState state(const KernelSpec&, const DeviceInfo&) noexcept override { return TuningState::tuned; }
    std::string exported() noexcept override { return {}; }
    Result<MergedTuning> merge(std::string_view) noexcept override { return MergedTuning(); }

   private:
    PlansTold& told_;
  };

  PlansTold& told_;
  Store store_;
  const bool keeps_;
  Dialect dialects_[1] = {Dialect::library};
};

// A planner with one generator for each plugin that is named.
struct PlannerScene {
  Config config;
  Registry registry;
  WorkCounters counters;
  DeviceTable devices{config, registry, Log{}, counters};
  WorkHistory history;
  std::vector<std::unique_ptr<PlansTold>> told;
  support::FixtureDevice device{options()};
  std::unique_ptr<Planner> planner;

  explicit PlannerScene(const std::vector<std::string>& plugins = {"first"}, const std::string& keeper = "first") {
    std::vector<LoadedGenerator> generators;
    for (const std::string& plugin : plugins) {
      told.push_back(std::make_unique<PlansTold>());
      generators.push_back(
          {plugin, {Dialect::library}, std::make_unique<TellingGenerator>(*told.back(), plugin == keeper)});
    }
    planner = std::make_unique<Planner>(std::move(generators), true, devices, history, nullptr);
  }
  static support::FixtureOptions options() {
    support::FixtureOptions chosen;
    chosen.info.dialects = {Dialect::library};
    chosen.queue = support::FixtureQueue::inside_submit;
    return chosen;
  }
  static RunRequest request_of(const KernelSpec& spec) {
    RunRequest request;
    request.name = "job";
    request.spec = spec;
    return request;
  }
};

}  // namespace

TEST_CASE("runtime::program_purpose: a convolution says its shape, and of the rest what is unusual") {
  Conv2dSpec spec;
  spec.c = 128, spec.h = 28, spec.w = 30, spec.k = 256, spec.r = 3, spec.s = 5;
  ProgramPurpose purpose = purpose_of(spec, "direct/plain");
  CHECK(purpose.operation == "conv2d");
  CHECK(purpose.shape == "1x128x28x30 k256 3x5");
  CHECK(purpose.variant == "direct/plain");
  spec.stride_y = spec.stride_x = 2;
  spec.pad_y = 1, spec.pad_x = 2;
  spec.dilation_x = 3;
  spec.groups = 128;
  spec.activation = Activation::relu;
  CHECK(purpose_of(spec, "").shape == "1x128x28x30 k256 3x5 stride 2 pad 1x2 dilation 1x3 groups 128 relu");
}

TEST_CASE("runtime::program_purpose: a product says its sizes, a user's kernel its file and grid") {
  CHECK(purpose_of(GemmSpec{64, 32, 16}, "tiled").shape == "m64 n32 k16");
  UserKernelSpec kernel;
  kernel.grid = {16, 2, 1};
  CHECK(purpose_of(kernel, "").operation == "kernel");
  CHECK(purpose_of(kernel, "").shape == "main grid 16x2x1");  // of no file
  kernel.path = "/somewhere/of the user's/saxpy.comp";
  CHECK(purpose_of(kernel, "").shape == "saxpy.comp grid 16x2x1");
}

TEST_CASE("runtime::planner: the winners of tuned shapes are known, but for those that cannot be planned any more") {
  PlannerScene scene;
  const GemmSpec gone{4, 1, 4}, first{2, 3, 4}, second{5, 6, 7};
  scene.told[0]->tuned = {gone, first, second};
  const TunedPrograms tuned = scene.planner->tuned_programs(scene.device);
  const std::set<std::pair<std::string, std::string>> shapes = {{"gemm", "m2 n3 k4"}, {"gemm", "m5 n6 k7"}};
  CHECK((tuned.shapes == shapes));
  CHECK(tuned.winners.size() == 2);
  for (const GemmSpec& spec : {first, second}) {
    const KernelPlan plan = plan_of_one_pass(spec, "winner 1");
    CHECK(tuned.winners.contains(key_of(plan.passes[0].source, scene.device.info(), "any label").digest));
  }
}

TEST_CASE("runtime::planner: the winners are those of the generator that serves the device") {
  PlannerScene scene({"first", "second"}, "second");
  scene.told[1]->tuned = {GemmSpec{2, 3, 4}};
  CHECK(scene.planner->tuning_for(scene.device.info()) == nullptr);
  CHECK(scene.planner->tuned_programs(scene.device).winners.empty());
  CHECK(scene.planner->tuning() != nullptr);  // another device may have them
  const PlannerScene none({"first", "second"}, "");
  CHECK(none.planner->tuning() == nullptr);
  const PlannerScene keeper;
  CHECK(keeper.planner->tuning_for(keeper.device.info()) == keeper.planner->tuning());
  CHECK(keeper.planner->tuning() != nullptr);
}

TEST_CASE("runtime::planner: a plan is made once for each revision of its generator, and a variant's each time") {
  PlannerScene scene;
  PlansTold& told = *scene.told[0];
  const RunRequest request = PlannerScene::request_of(GemmSpec{2, 3, 4});
  for (int i = 0; i < 3; ++i) {
    const auto plan = scene.planner->plan(request, scene.device, "");
    REQUIRE(plan);
    CHECK(plan->keyed->plan->variant == "winner 1");
    REQUIRE(plan->keyed->passes.size() == 1);
    CHECK(plan->keyed->passes[0].label == "job/winner 1");
    CHECK(plan->keyed->passes[0].purpose.shape == "m2 n3 k4");
    CHECK(plan->dialect == Dialect::library);
  }
  CHECK(told.generated == 1);
  told.revision = 2;
  for (int i = 0; i < 2; ++i) {
    const auto plan = scene.planner->plan(request, scene.device, "");
    REQUIRE(plan);
    CHECK(plan->keyed->plan->variant == "winner 2");
  }
  CHECK(told.generated == 2);
  for (int i = 0; i < 2; ++i) {
    const auto plan = scene.planner->plan(request, scene.device, "other");
    REQUIRE(plan);
    CHECK(plan->keyed->plan->variant == "other");
  }
  CHECK(told.variants == 2);
  const auto again = scene.planner->plan(request, scene.device, "");
  REQUIRE(again);
  CHECK(again->keyed->plan->variant == "winner 2");
  CHECK(told.generated == 2);
  const auto refused = scene.planner->plan(PlannerScene::request_of(GemmSpec{4, 1, 4}), scene.device, "");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().text() == "unsupported: n is 1");
}

TEST_CASE("runtime::planner: jobs share their programs, and the error of one names it") {
  PlannerScene scene;
  UserKernelSpec kernel;  // in a language that nobody writes for the device
  kernel.path = "own.cl";
  kernel.text = "own";
  kernel.dialect = Dialect::opencl_c;
  std::vector<WarmJob> jobs = {
      {"a", GemmSpec{2, 3, 4}}, {"b", GemmSpec{2, 3, 4}}, {"c", kernel}, {"d", GemmSpec{5, 6, 7}}};
  const auto programs = scene.planner->programs_of(jobs, scene.device);
  REQUIRE(programs);
  REQUIRE(programs->size() == 2);
  CHECK((*programs)[0].key.label == "a/winner 1");
  CHECK((*programs)[1].key.label == "d/winner 1");
  jobs.push_back({"e", GemmSpec{4, 1, 4}});
  const auto failed = scene.planner->programs_of(jobs, scene.device);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().text() == "unsupported: job 'e': n is 1");
}

TEST_CASE("runtime::planner: what no generator writes for a device is told with what the device reads") {
  PlannerScene scene;
  DeviceInfo device = scene.device.info();
  const GemmSpec product{2, 3, 4};
  CHECK(scene.planner->check_reads(device, product).ok());
  device.dialects = {Dialect::glsl, Dialect::opencl_c};
  CHECK(scene.planner->check_reads(device, product).message ==
        "device fixture:0: no loaded generator writes a language of the device (glsl or opencl_c)");
  UserKernelSpec kernel;
  kernel.path = "own.cl";
  kernel.text = "own";
  kernel.dialect = Dialect::opencl_c;
  CHECK(scene.planner->check_reads(device, kernel).message ==
        "device fixture:0 cannot run kernel own.cl: no loaded plugin prepares kernels in opencl_c. Load one such as "
        "dynamic_shaders");
  device.dialects = {Dialect::glsl};
  CHECK(scene.planner->check_reads(device, kernel).message ==
        "device fixture:0 cannot run kernel own.cl: written in opencl_c, expected glsl");
  device.dialects.clear();
  CHECK(scene.planner->check_reads(device, kernel).message ==
        "device fixture:0 cannot run kernel own.cl: written in opencl_c, expected nothing");
  kernel.dialect = Dialect::code_object;
  CHECK_THAT(scene.planner->check_reads(device, kernel).message, Contains("written in code_object, expected nothing"));
  kernel.path = "own.spv";
  CHECK_THAT(scene.planner->check_reads(device, kernel).message, Contains("written in SPIR-V, expected nothing"));
  const auto plan = scene.planner->plan(PlannerScene::request_of(kernel), scene.device, "");
  REQUIRE_FALSE(plan);
  CHECK(plan.error().code == StatusCode::unsupported);
}

TEST_CASE("runtime::work_history: runs, readiness and failures are of a spec, a device and a variant") {
  WorkHistory history;
  const KernelSpec spec = GemmSpec{2, 3, 4}, other = GemmSpec{5, 6, 7};
  CHECK_FALSE(history.is_ready(spec, "cpu"));
  CHECK_FALSE(history.begin_run(spec, "cpu", ""));
  CHECK(history.begin_run(spec, "cpu", ""));
  CHECK(history.is_ready(spec, "cpu"));
  CHECK_FALSE(history.is_ready(other, "cpu"));
  CHECK_FALSE(history.is_ready(spec, "opengl:0"));
  CHECK_FALSE(history.begin_run(spec, "cpu", "a"));
  CHECK_FALSE(history.begin_run(spec, "cpu", "b"));
  CHECK(history.begin_run(spec, "cpu", "a"));
  history.undo_run(spec, "cpu", "a");
  CHECK_FALSE(history.begin_run(spec, "cpu", "a"));
  CHECK(history.begin_run(spec, "cpu", "b"));
  history.undo_run(spec, "cpu", "");
  CHECK_FALSE(history.is_ready(spec, "cpu"));
  history.set_ready(spec, "cpu");
  CHECK(history.is_ready(spec, "cpu"));
  CHECK_FALSE(history.begin_run(spec, "cpu", ""));  // ready by a dispatch of nothing

  ShapeBucket pipeline;
  pipeline.shape = "a";
  ShapeBucket another;
  another.shape = "b";
  CHECK_FALSE(history.begin_run(pipeline, "cpu"));
  CHECK(history.begin_run(pipeline, "cpu"));
  CHECK(history.is_ready(pipeline, "cpu"));
  CHECK_FALSE(history.is_ready(another, "cpu"));
  CHECK_FALSE(history.is_ready(pipeline, "opengl:0"));

  CHECK_FALSE(history.failed_ahead(spec, "cpu"));
  history.set_failed_ahead(spec, "cpu");
  CHECK(history.failed_ahead(spec, "cpu"));
  CHECK_FALSE(history.failed_ahead(other, "cpu"));

  CHECK(history.fallback_variant(spec, "cpu", 1) == std::nullopt);
  history.set_fallback_variant(spec, "cpu", 1, "a");
  CHECK(history.fallback_variant(spec, "cpu", 1) == "a");
  CHECK(history.fallback_variant(spec, "cpu", 2) == std::nullopt);
  CHECK(history.fallback_variant(spec, "opengl:0", 1) == std::nullopt);
  CHECK(work_name(spec, "cpu").starts_with("cpu|gemm"));
}
