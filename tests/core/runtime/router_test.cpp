// Which device serves a request, and what a caller is told where another one does or none can.
#include "core/runtime/runtime_fixture.hpp"

#include <catch2/catch.hpp>

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
  CHECK_THAT(report.status.message, Contains("no alpha"));
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
}
