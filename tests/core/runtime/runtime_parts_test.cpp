// The parts that a runtime is made of: their names, what they cannot do, and which generator serves a device.
#include "core/runtime/runtime_fixture.hpp"

#include <kiln/config_reader.hpp>
#include <kiln/device_selector.hpp>
#include <kiln/executor.hpp>
#include <kiln/kernel_generator.hpp>
#include <kiln/open_program_cache.hpp>
#include <kiln/program_cache.hpp>

#include <catch2/catch.hpp>

#include <memory>
#include <string>

using namespace kiln;
using namespace kiln::test;
using Catch::Matchers::Contains;

TEST_CASE("runtime: names that are not registered are told with those that are") {
  RuntimeFixture fixture;
  fixture.config.cache.name = "granite";
  const auto made = Runtime::create(fixture.config, fixture.registry, {});
  REQUIRE_FALSE(made);
  CHECK(made.error().code == StatusCode::not_found);
  CHECK_THAT(made.error().message, Contains("'granite'") && Contains("'tiered'"));
  const auto error_with = [](const Config& config, const Registry& registry) {
    const auto refused = Runtime::create(config, registry, {});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == StatusCode::not_found);
    return refused.error().message;
  };
  CHECK_THAT(error_with(fixture.config, fixture.registry), Catch::StartsWith("[cache] name: "));
  fixture.config.cache.name = "tiered";
  fixture.config.executor.name = "granite";
  CHECK_THAT(error_with(fixture.config, fixture.registry), Catch::StartsWith("[executor] name: "));
  fixture.config.executor.name = "ring";
  fixture.config.selector.name = "granite";
  CHECK_THAT(error_with(fixture.config, fixture.registry), Catch::StartsWith("[selector] name: "));
  fixture.config.selector.name = "learning";
  fixture.config.generator.name = "granite";
  CHECK_THAT(error_with(fixture.config, fixture.registry), Catch::StartsWith("[generator] name: "));
}

TEST_CASE("runtime: a part that cannot be made is named with its reason") {
  RuntimeFixture fixture;
  Registry& registry = fixture.registry;
  std::string expected;
  Status added;
  SECTION("the cache") {
    added = registry.add_cache("test", "broken", [](const CacheContext&) {
      return Result<std::unique_ptr<ProgramCache>>(unavailable("no room"));
    });
    fixture.config.cache.name = "broken";
    expected = "cache 'broken': no room";
  }
  SECTION("the executor") {
    added = registry.add_executor("test", "broken", [](const ExecutorContext&) {
      return Result<std::unique_ptr<Executor>>(unavailable("no room"));
    });
    fixture.config.executor.name = "broken";
    expected = "executor 'broken': no room";
  }
  SECTION("the selector") {
    added = registry.add_selector("test", "broken", [](const SelectorContext&) {
      return Result<std::unique_ptr<DeviceSelector>>(unavailable("no room"));
    });
    fixture.config.selector.name = "broken";
    expected = "selector 'broken': no room";
  }
  SECTION("a generator") {
    added = registry.add_generator("some_plugin", "broken", {Dialect::library}, [](const GeneratorContext&) {
      return Result<std::unique_ptr<KernelGenerator>>(unavailable("no room"));
    });
    expected = "generator of plugin 'some_plugin': no room";
  }
  REQUIRE(added.ok());
  const auto made = Runtime::create(fixture.config, registry, {});
  REQUIRE_FALSE(made);
  CHECK(made.error().text() == "unavailable: " + expected);
}

TEST_CASE("runtime: a program cache without a runtime is the tiered one, of a configuration without problems") {
  RuntimeFixture fixture;  // for its folder
  CHECK(open_program_cache(fixture.config.cache, {}).has_value());
  fixture.config.cache.name = "granite";
  const auto other = open_program_cache(fixture.config.cache, {});
  REQUIRE_FALSE(other);
  CHECK(other.error().text() == "unsupported: cache 'granite': not available without a Runtime, expected 'tiered'");
  ConfigSources sources;
  sources.environment.clear();
  sources.cache_directory = (fixture.folder() / "other").string();
  CHECK(open_program_cache(sources, {}).has_value());
  sources.set = {"cache.policy=\"first\"", "cache.compression=\"second\""};
  const auto wrong = open_program_cache(sources, {});
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().code == StatusCode::invalid_argument);
  CHECK_THAT(wrong.error().message, Contains("first") && Contains("second") && Contains("\n"));
}

TEST_CASE("runtime: a generator that is named must be there; the default one may be absent like its plugin") {
  RuntimeFixture fixture;  // has "forwarder" alone
  fixture.config.generator.name = GeneratorConfig{}.name;
  CHECK(fixture.runtime().run(small_gemm()).verified == true);
  for (const OriginKind kind : {OriginKind::file, OriginKind::command_line}) {
    fixture.config.origins["generator.name"] = {kind, ""};
    const auto made = Runtime::create(fixture.config, fixture.registry, {});
    REQUIRE_FALSE(made);
    CHECK(made.error().code == StatusCode::not_found);
    CHECK_THAT(made.error().message, Contains("'dynamic_shaders'") && Contains("'forwarder'"));
  }
  fixture.config.origins["generator.name"] = {OriginKind::built_in, ""};
  CHECK(Runtime::create(fixture.config, fixture.registry, {}));
  fixture.config.origins.clear();
  fixture.config.generator.name = "granite";
  CHECK_FALSE(Runtime::create(fixture.config, fixture.registry, {}));
}

namespace {

class Refusing final : public KernelGenerator {
 public:
  std::span<const Dialect> dialects() const noexcept override { return dialects_; }
  Result<KernelPlan> generate(const KernelSpec&, const DeviceInfo&, Dialect) noexcept override {
    return unsupported("another plugin's generator");
  }
  void record(const KernelSpec&, const DeviceInfo&, std::string_view, const Measurement&) noexcept override {}

 private:
  Dialect dialects_[1] = {Dialect::library};
};

}  // namespace

TEST_CASE("runtime: a device is served by the configured generator, else by that of its own plugin") {
  RuntimeFixture fixture;
  for (const char* name : {"a_foreign", "z_foreign"}) {
    REQUIRE(fixture.registry
                .add_generator(name, name, {Dialect::library},
                               [](const GeneratorContext&) -> Result<std::unique_ptr<KernelGenerator>> {
                                 return std::unique_ptr<KernelGenerator>(std::make_unique<Refusing>());
                               })
                .ok());
  }
  RunRequest request = small_conv2d();
  request.device = "alpha";
  fixture.config.device.fallback = Fallback::never;
  SECTION("the configured one writes nothing that the device reads") {
    REQUIRE(fixture.registry
                .add_generator("other", "configured", {Dialect::opencl_c},
                               [](const GeneratorContext&) -> Result<std::unique_ptr<KernelGenerator>> {
                                 return std::unique_ptr<KernelGenerator>(std::make_unique<Refusing>());
                               })
                .ok());
    fixture.config.generator.name = "configured";
    const RunReport report = fixture.runtime().run(request);
    CHECK(report.status.text() == "ok");
    CHECK(report.variant == "forwarded");
  }
  SECTION("the configured one is another plugin's") {
    fixture.config.generator.name = "z_foreign";
    const RunReport report = fixture.runtime().run(request);
    CHECK(report.status.code == StatusCode::unsupported);
    CHECK_THAT(report.status.message, Contains("another plugin's generator"));
  }
}
