// Users' kernels through a runtime: which of their variants runs, and how their tensors are bound.
#include "core/runtime/runtime_fixture.hpp"

#include <kiln/kernel_generator.hpp>
#include <kiln/kernel_parameters.hpp>

#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

using namespace kiln;
using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

// Plans as another generator does, but a kernel's own in its first variant; GLSL too.
class FirstVariant final : public KernelGenerator {
 public:
  explicit FirstVariant(std::unique_ptr<KernelGenerator> plans) : plans_(std::move(plans)) {}

  // Makes it the generator of the fixture.
  static void serve(RuntimeFixture& fixture) {
    const GeneratorFactory make = fixture.registry.generators("forwarder").value().front()->make;
    const Status added = fixture.registry.add_generator(
        "test", "first_variant", {Dialect::library, Dialect::opencl_c, Dialect::glsl},
        [make](const GeneratorContext& context) -> Result<std::unique_ptr<KernelGenerator>> {
          auto plans = make(context);
          if (!plans) return plans;
          return std::unique_ptr<KernelGenerator>(std::make_unique<FirstVariant>(std::move(*plans)));
        });
    REQUIRE(added.ok());
    fixture.config.generator.name = "first_variant";
  }

  std::span<const Dialect> dialects() const noexcept override { return dialects_; }
  Result<KernelPlan> generate(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect) noexcept override {
    const auto* kernel = std::get_if<UserKernelSpec>(&spec);
    if (kernel == nullptr || kernel->parameters.empty()) return plans_->generate(spec, device, dialect);
    return plans_->generate_variant(spec, device, dialect, variants_of(*kernel).front());
  }
  Result<KernelPlan> generate_variant(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect,
                                      std::string_view variant) noexcept override {
    return plans_->generate_variant(spec, device, dialect, variant);
  }
  void record(const KernelSpec&, const DeviceInfo&, std::string_view, const Measurement&) noexcept override {}

 private:
  const std::unique_ptr<KernelGenerator> plans_;
  Dialect dialects_[3] = {Dialect::library, Dialect::opencl_c, Dialect::glsl};
};

RunRequest add_one_on_alpha(Dialect dialect) {
  UserKernelSpec spec;
  spec.path = "add_one";
  spec.text = "add_one";
  spec.dialect = dialect;
  spec.bindings = {{Access::read_write, 64}};
  RunRequest request;
  request.spec = spec;
  request.device = "alpha";
  request.tensors = {{HostTensor::create(DType::f32, {16}).value(), nullptr}};
  return request;
}

}  // namespace

TEST_CASE("runtime: if a kernel variant cannot be built, the next one is used and remembered") {
  RuntimeFixture fixture;
  fixture.options("alpha").info.dialects = {Dialect::library, Dialect::opencl_c};
  int builds = 0, failures = 2;  // how many of the builds fail
  StatusCode failure = StatusCode::invalid_argument;
  fixture.options("alpha").on_build = [&] {
    return ++builds <= failures ? Status{failure, "build " + std::to_string(builds)} : Status();
  };
  RunRequest request = add_one_on_alpha(Dialect::opencl_c);
  std::get<UserKernelSpec>(request.spec).parameters.push_back({"TILE", {"8", "16", "32"}});
  SECTION("the second that is tried") {
    const RunReport report = fixture.runtime().run(request);
    REQUIRE(report.status.text() == "ok");
    CHECK(report.variant == "user:TILE=16");  // the plan's own comes first, then all in their order
    REQUIRE(report.notes.size() == 1);
    CHECK_THAT(report.notes[0], Contains("alpha: runs user:TILE=16, these variants cannot run here: "));
    CHECK_THAT(report.notes[0], Contains("forwarded: invalid_argument: build 1"));
    CHECK_THAT(report.notes[0], Contains("user:TILE=8: invalid_argument: build 2"));
    const RunReport again = fixture.runtime().run(request);
    REQUIRE(again.status.text() == "ok");
    CHECK(again.variant == "user:TILE=16");
    CHECK(again.notes.empty());
    CHECK(builds == 3);
  }
  SECTION("none") {
    failures = 99;
    fixture.config.device.fallback = Fallback::never;
    const RunReport report = fixture.runtime().run(request);
    CHECK(report.status.code == StatusCode::invalid_argument);
    CHECK_THAT(report.status.message, Contains("none of the 4 variants can run here: "));
    CHECK_THAT(report.status.message, Contains("user:TILE=32: invalid_argument: build 4"));
    CHECK(builds == 4);
  }
  SECTION("a failure that is not the variant's ends it") {
    failures = 99;
    failure = StatusCode::internal;
    fixture.config.device.fallback = Fallback::never;
    const RunReport report = fixture.runtime().run(request);
    CHECK(report.status.code == StatusCode::internal);
    CHECK(builds == 1);
  }
  SECTION("a variant that was asked for has no other") {
    request.variant = "user:TILE=32";
    fixture.config.device.fallback = Fallback::never;
    const RunReport report = fixture.runtime().run(request);
    CHECK(report.status.code == StatusCode::invalid_argument);
    CHECK(builds == 1);
  }
}

TEST_CASE("runtime: where one variant alone cannot be built its error is told, and each variant is tried once") {
  RuntimeFixture fixture;
  FirstVariant::serve(fixture);
  fixture.config.device.fallback = Fallback::never;
  fixture.options("alpha").info.dialects = {Dialect::library, Dialect::opencl_c};
  int builds = 0, failures = 99;
  fixture.options("alpha").on_build = [&] {
    return ++builds <= failures ? invalid_argument("build " + std::to_string(builds)) : Status();
  };
  RunRequest request = add_one_on_alpha(Dialect::opencl_c);
  auto& texts = std::get<UserKernelSpec>(request.spec).parameters.emplace_back().texts;
  std::get<UserKernelSpec>(request.spec).parameters[0].name = "TILE";
  SECTION("the only one") {
    texts = {"8"};
    const RunReport report = fixture.runtime().run(request);
    CHECK(report.status.code == StatusCode::invalid_argument);
    CHECK_THAT(report.status.message, Contains("build 1") && !Contains("variants can run here"));
    CHECK(report.variant == "user:TILE=8");
    CHECK(builds == 1);
  }
  SECTION("both") {
    texts = {"8", "16"};
    const RunReport report = fixture.runtime().run(request);
    CHECK(report.status.code == StatusCode::invalid_argument);
    const std::string reasons = "none of the 2 variants can run here: user:TILE=8: invalid_argument: ";
    CHECK_THAT(report.status.message, Contains(reasons) && Contains("; user:TILE=16: invalid_argument: "));
    CHECK(report.variant == "user:TILE=8");
    CHECK(builds == 2);
  }
  SECTION("the first of two") {
    texts = {"8", "16"};
    failures = 1;
    const RunReport report = fixture.runtime().run(request);
    CHECK(report.status.text() == "ok");
    CHECK(report.variant == "user:TILE=16");
    CHECK(builds == 2);
  }
}

TEST_CASE("runtime: where a device does not report a program's interface, tensors are bound by position alone") {
  RuntimeFixture fixture;
  FirstVariant::serve(fixture);
  fixture.config.device.fallback = Fallback::never;
  fixture.options("alpha").info.dialects = {Dialect::library, Dialect::glsl};
  RunRequest request = add_one_on_alpha(Dialect::glsl);
  auto& spec = std::get<UserKernelSpec>(request.spec);
  CHECK(fixture.runtime().run(request).status.text() == "ok");
  CHECK(request.tensors[0].host->as<float>()[15] == 1);
  SECTION("a name") { spec.bindings[0].name = "Data"; }
  SECTION("a number") { spec.bindings[0].number = 0; }
  SECTION("a uniform") {
    spec.uniforms.push_back({"scale", UserKernelSpec::Uniform::Type::number, {}});
    request.tensors.push_back({HostTensor::create(DType::f64, {1}).value(), nullptr});
  }
  const RunReport report = fixture.runtime().run(request);
  CHECK(report.status.code == StatusCode::unsupported);
  CHECK_THAT(report.status.message, Contains("kernel add_one: the device does not report the interface of a program"));
  CHECK(fixture.controls("alpha").runs == 1);
}
