// The plugin template, built out of the tree by template_build.cmake: it loads, follows its settings and computes.
#include <catch2/catch.hpp>

#include <kiln/plugin_loader.hpp>

using namespace kiln;

TEST_CASE("template: the copied plugin loads and computes") {
  PluginLoader loader;
  Registry registry;
  PluginLoaderOptions options;
  options.path = {KILN_TEMPLATE_FOLDER};
  options.probe_timeout = std::chrono::seconds(60);
  const std::vector<std::string> names{"template"};
  const auto reports = loader.load(names, names, registry, options);
  INFO(reports[0].why_not.text());
  REQUIRE(reports[0].loaded);
  CHECK(reports[0].version == "1.0");
  REQUIRE(registry.config_keys().at("template").size() == 1);

  WorkCounters counters;
  DriverContext context;
  context.counters = &counters;
  context.settings = {{"name", std::string("renamed")}};
  auto driver = registry.drivers().at("template").make(context);
  REQUIRE(driver);
  CHECK((*driver)->enumerate().at(0).name == "renamed");
  CHECK((*driver)->open("other").error().code == StatusCode::not_found);
  auto device = (*driver)->open("template");
  REQUIRE(device);

  KernelSource source;
  source.dialect = Dialect::library;
  GemmSpec gemm;
  gemm.m = 1, gemm.n = 2, gemm.k = 2;
  source.spec = gemm;
  auto program = (*device)->build(source);
  REQUIRE(program);
  source.spec = Conv2dSpec();
  CHECK((*device)->build(source).error().code == StatusCode::unsupported);
  gemm.activation = Activation::relu6;  // known, and not what the loops compute
  source.spec = gemm;
  const auto clamped = (*device)->build(source);
  REQUIRE_FALSE(clamped);
  CHECK_THAT(clamped.error().message, Catch::Contains("activation relu6"));

  std::vector<float> a{1, 2}, b{3, 4, 5, 6}, c{-1, -1};
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (auto* values : {&a, &b, &c}) {
    auto buffer = (*device)->create_buffer(
        {values->size() * sizeof(float), BufferUsage::storage, std::as_writable_bytes(std::span(*values)), -1});
    REQUIRE(buffer);
    buffers.push_back(std::move(buffer).value());
  }
  Buffer* const bindings[] = {buffers[0].get(), buffers[1].get(), buffers[2].get()};
  const PassLaunch pass{program->get(), bindings, {1, 1, 1}};
  const auto value = (*device)->submit({std::span(&pass, 1)});
  REQUIRE(value);
  REQUIRE((*device)->wait(*value, Deadline::never()));
  CHECK(c == std::vector<float>{13, 16});
  CHECK((*device)->wait(*value, Deadline::never()).error().code == StatusCode::not_found);
}
