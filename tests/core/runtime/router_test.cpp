// Which device serves a request, and what a caller is told where another one does or none can.
#include "core/runtime/pipeline_chain.hpp"
#include "core/runtime/told_selector.hpp"
#include "support/happens.hpp"

#include <kiln/kernel_generator.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

using namespace kiln;
using namespace kiln::test;
using Catch::Matchers::Contains;

TEST_CASE("runtime: a device that is unavailable is named, and another serves") {
  RuntimeFixture fixture;
  fixture.options("alpha").info.usable = false;
  fixture.options("alpha").info.why_not = "unplugged by the test";
  RunRequest request = small_conv2d();
  request.device = "alpha";
  const RunReport report = fixture.runtime().run(request);
  REQUIRE(report.status.text() == "ok");
  CHECK(report.device.id == "beta");
  REQUIRE(report.notes.size() == 1);
  CHECK_THAT(report.notes[0], Contains("alpha") && Contains("unplugged by the test"));
}

TEST_CASE(
    "runtime: an unknown device is not_found for every call that names one, with all devices and the nearest id") {
  RuntimeFixture fixture;
  fixture.options("beta").info.usable = false;
  fixture.options("beta").info.why_not = "unplugged by the test";
  Runtime& runtime = fixture.runtime();
  RunRequest request = small_conv2d();
  request.device = "alpah";
  WarmRequest warm;
  warm.device = "alpah";
  const Status answers[] = {runtime.check_device("alpah"),    runtime.run(request).status,
                            runtime.explain(request).error(), runtime.warm(warm).error(),
                            runtime.tuned("alpah").error(),   runtime.record({small_conv2d()}, "alpah").error()};
  for (const Status& status : answers) {
    INFO(status.text());
    CHECK(status.code == StatusCode::not_found);
    CHECK_THAT(status.message, Contains("'alpah'") && Contains("usable: alpha") &&
                                   Contains("unusable: beta: unplugged by the test") && Contains("nearest: alpha"));
  }
  CHECK(fixture.controls("alpha").runs == 0);
  for (const char* known : {"", "auto", "alpha", "beta"}) CHECK(runtime.check_device(known).ok());
  CHECK(runtime.check_device("alpah").message ==
        "device 'alpah': no such device (usable: alpha; unusable: beta: unplugged by the test); nearest: alpha");
  CHECK(runtime.check_device("cuda:0").message ==
        "device 'cuda:0': no such device (usable: alpha; unusable: beta: unplugged by the test)");
}

TEST_CASE("runtime: an unknown [device] prefer is not_found too, whatever fallback says") {
  for (const Fallback fallback : {Fallback::report, Fallback::never}) {
    RuntimeFixture fixture;
    fixture.config.device = {"gamma", fallback};
    const RunReport report = fixture.runtime().run(small_conv2d());
    CHECK(report.status.code == StatusCode::not_found);
    CHECK(report.device.id.empty());
    CHECK_THAT(report.status.message, Contains("'gamma'") && Contains("usable: alpha, beta"));
  }
}

TEST_CASE("runtime: a device that cannot read a kernel's language is no candidate, and fallback = never is no matter") {
  RuntimeFixture fixture;
  fixture.options("alpha").info.dialects = {Dialect::glsl};
  fixture.config.device.fallback = Fallback::never;
  SECTION("a product goes to the device that reads what is written for it, without a note") {
    const RunReport report = fixture.runtime().run(small_gemm());
    REQUIRE(report.status.text() == "ok");
    CHECK(report.device.id == "beta");
    CHECK(report.notes.empty());
    const auto explained = fixture.runtime().explain(small_gemm());
    REQUIRE(explained.has_value());
    CHECK(explained->choice.candidate == 0);
  }
  SECTION("a preference is not meant for a job that the device cannot read") {
    fixture.config.device.prefer = "alpha";
    const RunReport report = fixture.runtime().run(small_gemm());
    REQUIRE(report.status.text() == "ok");
    CHECK(report.device.id == "beta");
    CHECK(report.notes.empty());
  }
  SECTION("a device that the request names is") {
    RunRequest request = small_gemm();
    request.device = "alpha";
    const RunReport report = fixture.runtime().run(request);
    CHECK(report.status.code == StatusCode::unsupported);
    CHECK_THAT(report.status.message, Contains("alpha") && Contains("glsl") && Contains("never"));
  }
  SECTION("where no device reads it, each of them is named with what it reads") {
    UserKernelSpec kernel;
    kernel.path = "own.cl";
    kernel.text = "kernel void own() {}";
    kernel.dialect = Dialect::opencl_c;
    RunRequest request;
    request.spec = kernel;
    const RunReport report = fixture.runtime().run(request);
    CHECK(report.status.code == StatusCode::unavailable);
    CHECK_THAT(report.status.message, Contains("own.cl") && Contains("written in opencl_c") && Contains("alpha") &&
                                          Contains("beta") && Contains("expected library"));
  }
  SECTION("a module of SPIR-V is called so") {
    UserKernelSpec kernel;
    kernel.path = "own.spv";
    kernel.text = "0000";
    kernel.dialect = Dialect::code_object;
    RunRequest request;
    request.spec = kernel;
    const RunReport report = fixture.runtime().run(request);
    CHECK_THAT(report.status.message, Contains("own.spv: written in SPIR-V, expected"));
  }
}

TEST_CASE("runtime: fallback = never makes it an error") {
  RuntimeFixture fixture;
  fixture.config.device.fallback = Fallback::never;
  fixture.options("alpha").info.usable = false;
  fixture.options("alpha").info.why_not = "unplugged by the test";
  RunRequest request = small_conv2d();
  request.device = "alpha";
  const RunReport report = fixture.runtime().run(request);
  CHECK(report.status.code == StatusCode::unavailable);
  CHECK_THAT(report.status.message, Contains("unplugged by the test") && Contains("never"));
  CHECK(report.runs == 0);
}

TEST_CASE("runtime: a device lost under a job is set aside, said so, and the job ends elsewhere") {
  RuntimeFixture fixture;
  fixture.controls("alpha").lose_at = 2;
  RunRequest request = small_conv2d();
  request.device = "alpha";
  CHECK(fixture.runtime().run(request).device.id == "alpha");
  const RunReport lost = fixture.runtime().run(request);
  REQUIRE(lost.status.text() == "ok");
  CHECK(lost.device.id == "beta");
  CHECK(lost.verified == true);
  CHECK(lost.notes.size() == 1);
  for (const DeviceInfo& device : fixture.runtime().known_devices()) CHECK(device.usable == (device.id == "beta"));
  const RunReport after = fixture.runtime().run(request);
  CHECK(after.device.id == "beta");
}

TEST_CASE("runtime: no device at all is unavailable, with every reason") {
  RuntimeFixture fixture;
  for (const char* name : {"alpha", "beta"}) {
    fixture.options(name).info.usable = false;
    fixture.options(name).info.why_not = std::string("no ") + name;
  }
  RunRequest request = small_conv2d();
  request.device = "alpha";
  const RunReport report = fixture.runtime().run(request);
  CHECK(report.status.code == StatusCode::unavailable);
  CHECK(report.device.id.empty());
  CHECK(report.status.message == "no device can serve:\n  device alpha: no alpha\n  device beta: no beta");
  const auto explained = fixture.runtime().explain(request);
  REQUIRE_FALSE(explained);
  CHECK(explained.error().message == report.status.message);
  request.device.clear();
  CHECK(fixture.runtime().run(request).status.message == report.status.message);
}

TEST_CASE("runtime: where no device takes a program, the error has the reason of each, of the asked one first") {
  RuntimeFixture fixture;
  const bool lost = GENERATE(false, true);
  fixture.controls("alpha").lacks = !lost;
  fixture.controls("alpha").lost = lost;
  fixture.controls("beta").fail_build = true;
  RunRequest request = small_conv2d();
  request.device = "alpha";
  const RunReport report = fixture.runtime().run(request);
  CHECK(report.status.code == StatusCode::invalid_argument);
  CHECK_THAT(report.status.message, Catch::StartsWith("alpha: ") &&
                                        Contains(lost ? "lost" : "the program needs what the device lacks") &&
                                        Contains("; other devices: beta: fixture compiler: 1:1: error: told to fail"));
  CHECK_THAT(report.status.message, !Contains("alpha: alpha: "));
}

TEST_CASE("runtime: where all devices are set aside, the one that is asked for is tried first") {
  RuntimeFixture fixture;
  for (const char* name : {"alpha", "beta"}) {
    fixture.controls(name).lose_at = 1;
    fixture.controls(name).comes_back = true;
  }
  const std::string asked = GENERATE(as<std::string>(), "alpha", "beta");
  const bool by_request = GENERATE(false, true);
  CAPTURE(asked, by_request);
  RunRequest request = small_conv2d();
  (by_request ? request.device : fixture.config.device.prefer) = asked;
  const RunReport report = fixture.runtime().run(request);
  REQUIRE(report.status.text() == "ok");
  CHECK(report.device.id == asked);
  CHECK(report.verified == true);
  const std::string other = asked == "alpha" ? "beta" : "alpha";
  REQUIRE(report.notes.size() >= 2);
  CHECK_THAT(report.notes[0], Catch::StartsWith(asked + " cannot serve: ") && Contains("(set aside for 1.0 s)"));
  CHECK_THAT(report.notes[1], Catch::StartsWith(other + " cannot serve: ") && Contains("(set aside for 1.0 s)"));
}

TEST_CASE("runtime: where all devices are set aside and the one that is asked for stays away, another is tried") {
  RuntimeFixture fixture;
  const bool asked = GENERATE(true, false);
  for (const char* name : {"alpha", "beta"}) fixture.controls(name).lose_at = 1;
  fixture.controls("beta").comes_back = true;
  fixture.controls("alpha").comes_back = !asked;
  RunRequest request = small_conv2d();
  if (asked) request.device = "alpha";
  const RunReport report = fixture.runtime().run(request);
  REQUIRE(report.status.text() == "ok");
  CHECK(report.verified == true);
  if (asked) CHECK(report.device.id == "beta");
  const std::string early = "device " + report.device.id + ": tried again early, because no other device can serve";
  if (std::ranges::count(report.notes, early) == 0) return;  // its pause had passed: it was chosen as any other
  CHECK(report.selected_because == "the only device that can serve");
}

namespace {

// Writes nothing.
class Wordless final : public KernelGenerator {
 public:
  std::span<const Dialect> dialects() const noexcept override { return dialects_; }
  Result<KernelPlan> generate(const KernelSpec&, const DeviceInfo&, Dialect) noexcept override {
    return unsupported("nothing is written");
  }
  void record(const KernelSpec&, const DeviceInfo&, std::string_view, const Measurement&) noexcept override {}

 private:
  Dialect dialects_[1] = {Dialect::library};
};

}  // namespace

TEST_CASE("runtime: where there is no device, or one alone that cannot serve, the error is one line") {
  RuntimeFixture fixture;  // for its configuration
  Registry registry;
  REQUIRE(register_core(registry).ok());
  REQUIRE(registry
              .add_generator("test", "forwarder", {Dialect::library},
                             [](const GeneratorContext&) -> Result<std::unique_ptr<KernelGenerator>> {
                               return std::unique_ptr<KernelGenerator>(std::make_unique<Wordless>());
                             })
              .ok());
  std::string why = "no device exists";
  if (GENERATE(false, true)) {
    why = "device broken: no library";
    REQUIRE(
        registry
            .add_driver("test", "broken",
                        [](const DriverContext&) { return Result<std::unique_ptr<Driver>>(unavailable("no library")); })
            .ok());
  }
  auto runtime = Runtime::create(fixture.config, registry, {});
  REQUIRE(runtime);
  CHECK((*runtime)->run(small_conv2d()).status.text() == "unavailable: no device can serve: " + why);
}

TEST_CASE("runtime: where no device can serve, a reason that was told before is told in short") {
  RuntimeFixture fixture;
  const Status added = fixture.registry.add_driver("test", "broken", [](const DriverContext&) {
    return Result<std::unique_ptr<Driver>>(unavailable("its library: not found"));
  });
  REQUIRE(added.ok());
  fixture.options("alpha").info.usable = false;
  fixture.options("alpha").info.why_not = "a wrapper: its library: not found";
  fixture.options("beta").info.usable = false;
  fixture.options("beta").info.why_not = "its library: too old";
  RunRequest request = small_conv2d();
  request.device = "broken:0";
  CHECK(fixture.runtime().run(request).status.message ==
        "no device can serve:\n  device broken:0: its library: not found\n  device alpha: a wrapper\n"
        "  device beta: its library: too old\n  device broken");
}

TEST_CASE("runtime: with fallback = never a job is run again on its device once, and nowhere else") {
  RuntimeFixture fixture;
  fixture.config.device.fallback = Fallback::never;
  RunRequest request = small_conv2d();
  request.device = "alpha";
  SECTION("the device comes back") {
    fixture.controls("alpha").comes_back = true;
    fixture.controls("alpha").lose_at = 1;
    const RunReport report = fixture.runtime().run(request);
    REQUIRE(report.status.text() == "ok");
    CHECK(report.device.id == "alpha");
    REQUIRE_FALSE(report.notes.empty());
    CHECK_THAT(report.notes[0], Catch::StartsWith("alpha: ") &&
                                    Catch::EndsWith("alpha: the fixture device was lost; the job is run again"));
    if (report.notes.size() > 1) {  // the pause of one second has not passed yet
      CHECK_THAT(report.notes[1], Catch::StartsWith("device alpha: set aside for another ") &&
                                      Catch::EndsWith("alpha: the fixture device was lost; tried again"));
    }
  }
  SECTION("it does not") {
    fixture.controls("alpha").lose_at = 1;
    const RunReport report = fixture.runtime().run(request);
    CHECK(report.status.code == StatusCode::device_lost);
    CHECK_THAT(report.status.message,
               Catch::StartsWith("fallback = \"never\": ") && Catch::EndsWith("alpha: the fixture device was lost"));
    CHECK(report.runs == 0);
  }
  CHECK(fixture.controls("beta").submits == 0);
}

TEST_CASE("runtime: with fallback = never another device does what a chosen one cannot, not what was asked of it") {
  Told told;
  RuntimeFixture fixture;
  ToldSelector::serve(fixture, told);  // takes beta
  fixture.config.device.fallback = Fallback::never;
  fixture.controls("beta").lacks = true;
  RunRequest request = small_conv2d();
  const RunReport report = fixture.runtime().run(request);
  REQUIRE(report.status.text() == "ok");
  CHECK(report.device.id == "alpha");
  REQUIRE(report.notes.size() == 1);
  CHECK_THAT(report.notes[0],
             Catch::StartsWith("beta cannot serve: ") && Catch::EndsWith("the program needs what the device lacks"));
  for (const DeviceInfo& device : fixture.runtime().known_devices()) CHECK(device.usable);
  request.device = "beta";
  std::get<Conv2dSpec>(request.spec).activation = Activation::relu;  // of which alpha has built nothing
  const RunReport refused = fixture.runtime().run(request);
  CHECK(refused.status.code == StatusCode::unsupported);
  CHECK_THAT(refused.status.message, Catch::StartsWith("fallback = \"never\": "));
}

TEST_CASE("runtime: a device is chosen because it was asked for, or because no other can serve") {
  RuntimeFixture fixture;
  RunRequest request = small_conv2d();
  SECTION("by the request") { request.device = "beta"; }
  SECTION("by the configuration") { fixture.config.device.prefer = "beta"; }
  SECTION("by nobody") {
    fixture.options("alpha").info.usable = false;
    fixture.options("alpha").info.why_not = "unplugged by the test";
  }
  const bool asked = fixture.options("alpha").info.usable;
  const RunReport report = fixture.runtime().run(request);
  REQUIRE(report.status.text() == "ok");
  CHECK(report.device.id == "beta");
  CHECK(report.selected_because == (asked ? "requested" : "the only device that can serve"));
  CHECK(report.notes.empty());
}

TEST_CASE("runtime: a driver that cannot start is the reason why another device serves what is asked of its own") {
  RuntimeFixture fixture;
  const Status added = fixture.registry.add_driver("test", "broken", [](const DriverContext&) {
    return Result<std::unique_ptr<Driver>>(unavailable("no library"));
  });
  REQUIRE(added.ok());
  RunRequest request = small_conv2d();
  request.device = "broken:0";
  const RunReport report = fixture.runtime().run(request);
  REQUIRE(report.status.text() == "ok");
  CHECK(report.notes == std::vector<std::string>{"device broken:0: no library"});
  const auto explained = fixture.runtime().explain(request);
  REQUIRE(explained);
  REQUIRE_FALSE(explained->words.empty());
  CHECK(explained->words.back() == "device broken:0: no library");
  for (const char* name : {"alpha", "beta"}) fixture.controls(name).fail_build = true;
  std::get<Conv2dSpec>(request.spec).activation = Activation::relu;
  const RunReport refused = fixture.runtime().run(request);
  CHECK(refused.status.code == StatusCode::invalid_argument);
  CHECK_THAT(refused.status.message,
             Catch::StartsWith("device broken:0: no library; other devices: ") && Contains("told to fail"));
}

TEST_CASE("runtime: a device that is set aside is among the notes of a job that could have used it") {
  RuntimeFixture fixture;
  fixture.controls("alpha").lose_at = 1;
  RunRequest request = small_conv2d();
  bool told = false;
  for (int loss = 0; loss < 6 && !told; ++loss) {  // each pause is twice as long: the job comes before the end of one
    request.device = "alpha";
    REQUIRE(fixture.runtime().run(request).device.id == "beta");
    request.device.clear();
    const RunReport report = fixture.runtime().run(request);
    REQUIRE(report.status.text() == "ok");
    CHECK(report.device.id == "beta");
    told = report.notes.size() == 1 && report.notes[0].starts_with("alpha: set aside for another ");
  }
  CHECK(told);
}

TEST_CASE("runtime: the selector is told the terms of a job, and which devices are not ready for it") {
  Told told;
  RuntimeFixture fixture;
  ToldSelector::serve(fixture, told);  // takes beta
  fixture.config.selector.serve_while_building = GENERATE(true, false);
  Runtime& runtime = fixture.runtime();
  RunRequest request = small_conv2d();
  request.repeat = 0;
  REQUIRE(runtime.run(request).status.text() == "ok");
  request.repeat = 4;
  request.timeout = std::chrono::seconds(60);
  REQUIRE(runtime.run(request).status.text() == "ok");
  REQUIRE(told.terms.size() == 2);
  CHECK(told.terms[0].repeat == 1);
  CHECK_FALSE(told.terms[0].has_deadline);
  CHECK(told.terms[0].can_build_ahead == fixture.config.selector.serve_while_building);
  CHECK(told.cold[0] == std::vector<bool>{true, true});
  CHECK(told.terms[1].repeat == 4);
  CHECK(told.terms[1].has_deadline);
  CHECK(told.cold[1] == std::vector<bool>{true, false});

  REQUIRE(runtime.record({small_gemm()}));
  REQUIRE(told.terms.size() == 3);
  CHECK(told.terms[2].has_deadline);  // many replays may follow
  const Chain chain;
  PipelineRequest pipeline = chain.on_beta();
  pipeline.device.clear();
  for (int run = 0; run < 2; ++run) REQUIRE(runtime.run(pipeline).status.text() == "ok");
  REQUIRE(told.terms.size() == 5);
  CHECK_FALSE(told.terms[3].can_build_ahead);
  CHECK_FALSE(told.terms[3].has_deadline);
  CHECK(told.cold[3] == std::vector<bool>{true, true});
  CHECK(told.cold[4] == std::vector<bool>{true, false});
}

namespace {

// Takes the first candidate, and has the program of the second built meanwhile.
class AheadSelector final : public DeviceSelector {
 public:
  explicit AheadSelector(Told& told) : told_(told) {}
  Result<Choice> select(const ShapeBucket&, std::span<const Candidate> candidates,
                        const JobTerms& terms) noexcept override {
    const std::lock_guard lock(told_.mutex);
    told_.terms.push_back(terms);
    told_.cold.push_back({candidates[0].cold, candidates[1].cold});
    return Choice{0, "the first", terms.can_build_ahead ? std::optional<std::size_t>(1) : std::nullopt};
  }
  Result<Explanation> explain(const ShapeBucket&, std::span<const Candidate>, const JobTerms&) noexcept override {
    return unsupported("nothing to explain");
  }
  void record(const ShapeBucket&, const DeviceInfo&, const Measurement&, const RunConditions&) noexcept override {}

 private:
  Told& told_;
};

class AheadLog final : public LogSink {
 public:
  void write(LogLevel, std::string_view, std::string_view message) noexcept override {
    const std::lock_guard lock(mutex_);
    if (message.starts_with("building ahead")) said_.emplace_back(message);
  }
  std::vector<std::string> said() const {
    const std::lock_guard lock(mutex_);
    return said_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> said_;
};

}  // namespace

TEST_CASE("runtime: what was built ahead of use is ready, and what could not be is not asked for again") {
  Told told;
  AheadLog log;
  RuntimeFixture fixture;
  fixture.log = {&log, LogLevel::info};
  REQUIRE(fixture.registry
              .add_selector("test", "ahead",
                            [&told](const SelectorContext&) {
                              return Result<std::unique_ptr<DeviceSelector>>(std::make_unique<AheadSelector>(told));
                            })
              .ok());
  fixture.config.selector.name = "ahead";
  const bool fails = GENERATE(false, true);
  fixture.controls("beta").fail_build = fails;
  Runtime& runtime = fixture.runtime();
  const auto settled = [&] {
    REQUIRE(runtime.run(small_conv2d()).status.text() == "ok");
    return fails ? !told.terms.back().can_build_ahead : !told.cold.back()[1];
  };
  REQUIRE(happens(settled));
  CHECK(told.terms.front().can_build_ahead);
  CHECK(told.cold.back()[1] == fails);
  CHECK(fixture.controls("beta").builds == 1);
  REQUIRE(log.said().size() == (fails ? 1u : 0u));
  if (fails) {
    CHECK_THAT(log.said()[0], Catch::StartsWith("building ahead for beta failed: ") && Contains("told to fail"));
  }
}
