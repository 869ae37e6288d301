// The fixture plugins that replace cache, executor, selector and generator, and the fixture driver, put together by
// hand.
#include <catch2/catch.hpp>

#include "core/plugin/plugin_folder.hpp"

using namespace kiln;
using namespace kiln::test;

TEST_CASE("fixture plugins: a plugin replaces each of the five interfaces, and together they compute") {
  PluginFolder folder({"fixture", "fixture_cache", "fixture_executor", "fixture_selector", "fixture_generator"});
  for (const PluginReport& report :
       folder.load({"fixture", "fixture_cache", "fixture_executor", "fixture_selector", "fixture_generator"})) {
    INFO(report.why_not.text());
    REQUIRE(report.loaded);
  }
  const Registry& registry = folder.registry;
  CHECK(registry.config_keys().contains("fixture"));

  WorkCounters counters;
  DriverContext context;
  context.counters = &counters;
  context.settings = {{"devices", std::int64_t{2}}};
  auto driver = registry.drivers().at("fixture").make(context);
  REQUIRE(driver);
  std::vector<DeviceInfo> infos = (*driver)->enumerate();
  REQUIRE(infos.size() == 2);

  GemmSpec gemm;
  gemm.m = 2, gemm.n = 2, gemm.k = 2;
  const KernelSpec spec = gemm;

  auto selector = (*registry.selector("fixture_selector"))({});
  const Candidate candidates[] = {{&infos[0], 0, false}, {&infos[1], 0, true}};
  const auto choice = (*selector)->select(spec, candidates, {});
  REQUIRE(choice);
  CHECK(choice->candidate == 1);

  std::shared_ptr<Device> device = (*driver)->open(infos[choice->candidate].id).value();
  auto generator = (*registry.generators("fixture_generator"))[0]->make({});
  const auto plan = (*generator)->generate(spec, device->info(), Dialect::library);
  REQUIRE(plan);
  REQUIRE(validate(*plan).ok());

  auto cache = (*registry.cache("fixture_cache"))({});
  Submission job;
  job.device = device;
  job.plan = std::make_shared<const KernelPlan>(*plan);
  const ProgramKey key = key_of(plan->passes[0].source, device->info(), "gemm");
  const auto acquired = (*cache)->get_or_build(key, plan->passes[0].source, *device);
  REQUIRE(acquired);
  CHECK(acquired->tier == Tier::built);
  CHECK((*cache)->get_or_build(key, plan->passes[0].source, *device));
  CHECK(counters.builds == 2);
  CHECK((*cache)->stats().misses == 2);
  CHECK(dynamic_cast<WarmableCache*>(cache->get()) == nullptr);
  job.programs = {acquired->program};

  auto a = HostTensor::create(DType::f32, {2, 2}).value();
  auto b = HostTensor::create(DType::f32, {2, 2}).value();
  auto c = HostTensor::create(DType::f32, {2, 2}).value();
  for (std::size_t i = 0; i < 4; ++i) {
    a->as<float>()[i] = static_cast<float>(i + 1);
    b->as<float>()[i] = static_cast<float>(10 * (i + 1));
  }
  job.tensors = {{a, nullptr}, {nullptr, Constant::create(b)}, {c, nullptr}};
  ExecutorContext executor_context;
  executor_context.counters = &counters;
  auto executor = (*registry.executor("fixture_executor"))(executor_context);
  const auto fence = (*executor)->submit(std::move(job));
  REQUIRE(fence);
  const auto measured = (*executor)->wait(*fence, Deadline::never());
  REQUIRE(measured);
  CHECK((*executor)->wait(*fence, Deadline::never()).error().code == StatusCode::not_found);
  const auto out = c->as<float>();
  CHECK(std::vector<float>(out.begin(), out.end()) == std::vector<float>{70, 100, 150, 220});
}
