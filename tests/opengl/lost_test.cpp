#include <catch2/catch.hpp>

#include "opengl/support/kernels.hpp"
#include "opengl/support/wrapping_egl.hpp"

namespace kiln::support {
namespace {

constexpr unsigned guilty_context_reset = 0x8253;

void check_lost(const Status& status) {
  CHECK(status.code == StatusCode::device_lost);
  CHECK_THAT(status.message, Catch::Contains("opengl:0") && Catch::Contains("GL_GUILTY_CONTEXT_RESET"));
}

}  // namespace

TEST_CASE("opengl: a lost context answers device_lost from every call until it is opened again", "[opengl][lost]") {
  OpenGl gl(with_wrapping_egl());
  if (!gl.usable()) return;
  Device& device = gl.device();
  const auto program = build(device, saxpy());
  const auto x = buffer_of(device, std::vector<float>(64, 1.0f));
  const auto y = buffer_of(device, std::vector<float>(64, 1.0f));
  REQUIRE(run(device, *program, {x.get(), y.get()}, {1, 1, 1}).has_value());

  egl_switches().reset_status = guilty_context_reset;
  const auto lost = run(device, *program, {x.get(), y.get()}, {1, 1, 1});
  egl_switches().reset_status = 0;  // a driver tells a reset once; the device stays lost
  REQUIRE_FALSE(lost.has_value());
  check_lost(lost.error());

  check_lost(run(device, *program, {x.get(), y.get()}, {1, 1, 1}).error());
  check_lost(device.build(saxpy()).error());
  check_lost(device.load(saxpy(), {"gl2:875f", std::vector<std::byte>(64)}).error());
  check_lost(device.serialize(*program).error());
  check_lost(device.create_buffer({64, BufferUsage::upload, {}, -1}).error());
  std::byte bytes[4] = {};
  check_lost(x->write(0, bytes));
  check_lost(x->read(0, bytes));

  const auto again = gl.plugin().open("opengl:0");
  const auto rebuilt = build(*again, saxpy());
  const auto a = buffer_of(*again, std::vector<float>(64, 1.0f));
  const auto b = buffer_of(*again, std::vector<float>(64, 1.0f));
  REQUIRE(run(*again, *rebuilt, {a.get(), b.get()}, {1, 1, 1}).has_value());
  CHECK(contents(*b) == std::vector<float>(64, 3.5f));
}

}  // namespace kiln::support
