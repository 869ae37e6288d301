// A driver that finds no memory, in one call after the other: each is reported by type, and the next try succeeds.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "opengl/support/kernels.hpp"
#include "opengl/support/wrapping_egl.hpp"

namespace kiln::support {
namespace {

Result<std::unique_ptr<Buffer>> filled(Device& device, BufferUsage usage, float value) {
  auto buffer = device.create_buffer({64 * sizeof(float), usage, {}, -1});
  if (!buffer) return buffer.error();
  const std::vector<float> values(64, value);
  if (Status status = (*buffer)->write(0, std::as_bytes(std::span(values))); !status.ok()) return status;
  return buffer;
}

// Buffers of each usage, written and read, and a program that is built, stored, loaded and run.
Status try_all(Device& device) {
  const auto x = filled(device, BufferUsage::upload, 2), y = filled(device, BufferUsage::readback, 1),
             z = filled(device, BufferUsage::storage, 7), c = filled(device, BufferUsage::constant, 8);
  for (const auto* each : {&x, &y, &z, &c}) {
    if (!*each) return each->error();
  }
  const auto program = device.build(saxpy());
  if (!program) return program.error();
  const auto binary = device.serialize(**program);
  if (!binary) return binary.error();
  const auto loaded = device.load(saxpy(), *binary);
  // A driver that cannot load a binary is one that refuses it: it is built anew.
  if (!loaded) return loaded.error();
  for (const Program* each : {program->get(), loaded->get()}) {
    const auto done = run(device, *each, {x->get(), y->get()}, {1, 1, 1});
    if (!done) return done.error();
  }
  for (const auto& [buffer, value] : {std::pair{&y, 11.0f}, std::pair{&z, 7.0f}, std::pair{&c, 8.0f}}) {
    std::vector<float> values(64);
    if (Status status = (**buffer)->read(0, std::as_writable_bytes(std::span(values))); !status.ok()) return status;
    CHECK(values == std::vector<float>(64, value));
  }
  return {};
}

}  // namespace

TEST_CASE("opengl: failing: each call that finds no memory is reported, and the next try succeeds",
          "[opengl][failing]") {
  for (const char* mapping : {"never", "staging", "always"}) {
    PluginSettings settings = with_wrapping_egl();
    settings["persistent_mapping"] = std::string(mapping);
    OpenGl gl(settings);
    if (!gl.usable()) return;
    Device& device = gl.device();
    REQUIRE(try_all(device).ok());
    int failures = 0;
    for (int call = 1;; ++call) {
      INFO(mapping << ", check " << call);
      REQUIRE(call < 1000);
      egl_switches().error_to_give = call;
      const Status status = try_all(device);
      const bool given = egl_switches().error_to_give.exchange(0) == 0;
      INFO(status.text());
      if (!given) {
        CHECK(status.ok());
        break;
      }
      REQUIRE_FALSE(status.ok());
      CHECK((status.code == StatusCode::unavailable || status.code == StatusCode::corrupt));
      CHECK_THAT(status.message, Catch::Contains("GL_OUT_OF_MEMORY") && Catch::Contains("opengl:0"));
      const Status again = try_all(device);
      INFO(again.text());
      CHECK(again.ok());
      ++failures;
    }
    CHECK(failures >= 10);
  }
}

TEST_CASE("opengl: failing: memory that cannot be mapped is reported, and the next try succeeds", "[opengl][failing]") {
  for (const char* mapping : {"staging", "always"}) {
    PluginSettings settings = with_wrapping_egl();
    settings["persistent_mapping"] = std::string(mapping);
    int failures = 0;
    for (int call = 1;; ++call) {
      INFO(mapping << ", mapping " << call);
      REQUIRE(call < 100);
      OpenGl gl(settings);
      if (!gl.usable()) return;
      Device& device = gl.device();
      egl_switches().map_to_fail = call;
      const Status status = try_all(device);
      const bool given = egl_switches().map_to_fail.exchange(0) == 0;
      INFO(status.text());
      if (!given) {
        CHECK(status.ok());
        break;
      }
      REQUIRE_FALSE(status.ok());
      CHECK(status.code == StatusCode::unavailable);
      CHECK_THAT(status.message, Catch::Contains("cannot be mapped") && Catch::Contains("opengl:0"));
      CHECK(try_all(device).ok());
      ++failures;
    }
    CHECK(failures >= 2);
  }
}

TEST_CASE("opengl: failing: an error of a driver that opens a device is told", "[opengl][failing]") {
  int failures = 0;
  for (int call = 1;; ++call) {
    INFO("check " << call);
    REQUIRE(call < 100);
    OpenGl gl(with_wrapping_egl());
    if (!gl.usable()) return;
    egl_switches().error_to_give = call;
    const auto opened = gl.plugin().driver().open("opengl:0");
    const bool given = egl_switches().error_to_give.exchange(0) == 0;
    if (!given) {
      CHECK(opened.has_value());
      break;
    }
    if (!opened) {
      ++failures;
      CHECK_THAT(opened.error().text(),
                 Catch::StartsWith("unavailable: opengl:0: ") && Catch::Contains("GL_OUT_OF_MEMORY"));
    }
    const auto again = gl.plugin().driver().open("opengl:0");
    REQUIRE(again.has_value());
    CHECK(try_all(**again).ok());
  }
  CHECK(failures >= 1);
}

}  // namespace kiln::support
