#include <catch2/catch.hpp>
#include <numeric>
#include <span>
#include <thread>

#include <kiln/fence_exchange.hpp>

#include "opengl/support/kernels.hpp"
#include "opengl/support/wrapping_egl.hpp"

namespace kiln::support {
namespace {

constexpr std::size_t floats = 4096;

std::vector<float> whole_numbers() {
  std::vector<float> values(floats);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

}  // namespace

TEST_CASE("opengl: saxpy is right and its device time is told", "[opengl][queue]") {
  OpenGl gl;
  if (!gl.usable()) return;
  Device& device = gl.device();
  const auto program = build(device, saxpy());
  const auto x = buffer_of(device, whole_numbers());
  const auto y = buffer_of(device, std::vector<float>(floats, 1.0f), BufferUsage::readback);
  const std::uint64_t before = now_ns();
  const auto fence = run(device, *program, {x.get(), y.get()}, {floats / 64, 1, 1});
  INFO((fence ? std::string() : fence.error().text()));
  REQUIRE(fence.has_value());
  CHECK(fence->device_ns > 0);
  CHECK(fence->begun_ns >= before);  // on the host's clock
  CHECK(fence->begun_ns <= now_ns());
  std::vector<float> expected = whole_numbers();
  for (float& value : expected) value = 2.5f * value + 1.0f;
  CHECK(contents(*y) == expected);
  CHECK(contents(*x) == whole_numbers());
}

TEST_CASE("opengl: a pass sees what the pass before wrote", "[opengl][queue]") {
  OpenGl gl;
  if (!gl.usable()) return;
  Device& device = gl.device();
  const auto square = build(device, square_into_scratch());
  const auto add = build(device, add_neighbour());
  const auto in = buffer_of(device, whole_numbers());
  const auto scratch = buffer_of(device, std::vector<float>(floats, -1.0f), BufferUsage::storage);
  const auto out = buffer_of(device, std::vector<float>(floats, -1.0f), BufferUsage::readback);
  Buffer* const first[] = {in.get(), scratch.get()};
  Buffer* const second[] = {scratch.get(), out.get()};
  const PassLaunch passes[] = {{square.get(), first, {floats / 64, 1, 1}}, {add.get(), second, {floats / 64, 1, 1}}};
  const auto value = device.submit({passes});
  REQUIRE(value.has_value());
  REQUIRE(device.wait(*value, Deadline::never()).has_value());
  std::vector<float> expected(floats);
  for (std::size_t i = 0; i < floats; ++i) {
    const auto a = static_cast<float>(i), b = static_cast<float>(i ^ 1);
    expected[i] = a * a + b * b;
  }
  CHECK(contents(*out) == expected);
}

TEST_CASE("opengl: a deadline that passes is a timeout, and the work can be waited for again", "[opengl][queue]") {
  OpenGl gl;
  if (!gl.usable()) return;
  Device& device = gl.device();
  const auto program = build(device, spin(20000));  // tens of milliseconds at the least
  const auto y = buffer_of(device, {1.0f}, BufferUsage::readback);
  Buffer* const bindings[] = {y.get()};
  const PassLaunch launch{program.get(), bindings, {1, 1, 1}};
  const auto value = device.submit({std::span(&launch, 1)});
  REQUIRE(value.has_value());
  const auto early = device.wait(*value, Deadline::after(std::chrono::nanoseconds(1)));
  REQUIRE_FALSE(early.has_value());
  CHECK(early.error().code == StatusCode::timeout);
  CHECK_THAT(early.error().message, Catch::Contains("opengl:0") && Catch::Contains(std::to_string(*value)));
  const auto later = device.wait(*value, Deadline::never());
  INFO((later ? std::string() : later.error().text()));
  REQUIRE(later.has_value());
  CHECK(contents(*y)[0] == Approx(1.2807764));  // the fixed point of v = sqrt(v/2 + 1)
}

TEST_CASE("opengl: while a fence is not passed other calls are served", "[opengl][queue]") {
  OpenGl gl(with_wrapping_egl());
  if (!gl.usable()) return;
  Device& device = gl.device();
  const auto program = build(device, saxpy());
  const auto x = buffer_of(device, whole_numbers());
  const auto y = buffer_of(device, whole_numbers());
  Buffer* const bindings[] = {x.get(), y.get()};
  const PassLaunch launch{program.get(), bindings, {floats / 64, 1, 1}};
  egl_switches().waits_to_expire = 1 << 30;
  const auto value = device.submit({std::span(&launch, 1)});
  REQUIRE(value.has_value());
  const auto early = device.wait(*value, Deadline::after(std::chrono::milliseconds(5)));
  const bool timed_out = !early.has_value() && early.error().code == StatusCode::timeout;
  const auto meanwhile = device.create_buffer({64, BufferUsage::storage, {}, -1});
  const bool served = meanwhile.has_value();
  egl_switches().waits_to_expire = 0;
  CHECK(timed_out);
  CHECK(served);
  CHECK(device.wait(*value, Deadline::never()).has_value());
}

TEST_CASE("opengl: programs are built and loaded while the dispatching context is busy", "[opengl][queue]") {
  OpenGl gl(with_wrapping_egl());
  if (!gl.usable()) return;
  Device& device = gl.device();
  const auto program = build(device, saxpy());
  const auto x = buffer_of(device, whole_numbers());
  const auto y = buffer_of(device, std::vector<float>(floats, 0.0f));
  Buffer* const bindings[] = {x.get(), y.get()};
  PassLaunch launch{program.get(), bindings, {floats / 64, 1, 1}};
  egl_switches().hold_waits = true;
  const auto held = device.submit({std::span(&launch, 1)});
  KernelSource other = saxpy();
  other.constants[0].text = "3.0";
  const auto built = device.build(other);
  bool loads = !device.info().serializes;
  if (built && !loads) {
    const auto binary = device.serialize(**built);
    loads = binary && device.load(other, *binary).has_value();
  }
  const bool still_held = !device.wait(held ? *held : 0, Deadline::after(std::chrono::nanoseconds(1))).has_value();
  egl_switches().hold_waits = false;
  REQUIRE(held.has_value());
  REQUIRE(built.has_value());
  CHECK(loads);
  CHECK(still_held);
  REQUIRE(device.wait(*held, Deadline::never()).has_value());
  launch.program = built->get();  // made on the other context, run on this one
  const auto next = device.submit({std::span(&launch, 1)});
  REQUIRE(next.has_value());
  REQUIRE(device.wait(*next, Deadline::never()).has_value());
  std::vector<float> expected = whole_numbers();
  for (float& value : expected) value = 3.0f * value + 2.5f * value;
  CHECK(contents(*y) == expected);
}

TEST_CASE("opengl: a wait that the driver fails is a typed error of that value alone", "[opengl][queue]") {
  OpenGl gl(with_wrapping_egl());
  if (!gl.usable()) return;
  Device& device = gl.device();
  const auto program = build(device, saxpy());
  const auto x = buffer_of(device, whole_numbers());
  const auto y = buffer_of(device, whole_numbers());
  egl_switches().waits_to_fail = 1;
  const auto failed = run(device, *program, {x.get(), y.get()}, {1, 1, 1});
  REQUIRE_FALSE(failed.has_value());
  CHECK(failed.error().code == StatusCode::internal);
  CHECK_THAT(failed.error().message, Catch::Contains("glClientWaitSync"));
  CHECK(run(device, *program, {x.get(), y.get()}, {1, 1, 1}).has_value());
}

TEST_CASE("opengl: both answers of a wait that succeeds end it", "[opengl][queue]") {
  constexpr unsigned already_signaled = 0x911A, condition_satisfied = 0x911C;
  OpenGl gl(with_wrapping_egl());
  if (!gl.usable()) return;
  Device& device = gl.device();
  const auto program = build(device, saxpy());
  const auto x = buffer_of(device, whole_numbers());
  const auto y = buffer_of(device, whole_numbers());
  for (const unsigned answer : {already_signaled, condition_satisfied}) {
    egl_switches().success = answer;
    const auto fence = run(device, *program, {x.get(), y.get()}, {floats / 64, 1, 1});
    egl_switches().success = 0;
    INFO("answer " << answer << ": " << (fence ? std::string() : fence.error().text()));
    CHECK(fence.has_value());
  }
}

TEST_CASE("opengl: many threads build, submit and wait at once", "[opengl][queue]") {
  OpenGl gl;
  if (!gl.usable()) return;
  Device& device = gl.device();
  constexpr std::size_t thread_count = 8;
  std::vector<std::string> faults(thread_count);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < thread_count; ++t) {
    threads.emplace_back([&device, &fault = faults[t], t] {
      KernelSource source = saxpy();
      source.constants = {{"A", std::to_string(t) + ".0"}};
      auto program = device.build(source);
      auto x = device.create_buffer({256 * sizeof(float), BufferUsage::upload, {}, -1});
      auto y = device.create_buffer({256 * sizeof(float), BufferUsage::readback, {}, -1});
      if (!program || !x || !y) {
        fault = "not made";
        return;
      }
      const std::vector<float> ones(256, 1.0f);
      fault += (*x)->write(0, std::as_bytes(std::span(ones))).message;
      fault += (*y)->write(0, std::as_bytes(std::span(ones))).message;
      std::vector<std::uint64_t> values;
      Buffer* const bindings[] = {x->get(), y->get()};
      const PassLaunch launch{program->get(), bindings, {4, 1, 1}};
      for (int i = 0; i < 5; ++i) {
        auto value = device.submit({std::span(&launch, 1)});
        if (value) values.push_back(*value);
      }
      for (const std::uint64_t value : values) {
        if (auto fence = device.wait(value, Deadline::never()); !fence) fault += fence.error().text();
      }
      std::vector<float> out(256);
      fault += (*y)->read(0, std::as_writable_bytes(std::span(out))).message;
      if (out != std::vector<float>(256, 1.0f + 5.0f * static_cast<float>(t))) fault += "wrong values";
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& fault : faults) CHECK(fault == "");
}

TEST_CASE("opengl: a grid beyond the limit names the axis, what was found and the limit", "[opengl][queue]") {
  OpenGl gl;
  if (!gl.usable()) return;
  Device& device = gl.device();
  const auto program = build(device, saxpy());
  const auto x = buffer_of(device, whole_numbers());
  const auto y = buffer_of(device, whole_numbers());
  const auto limits = device.info().max_grid;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (limits[axis] == ~std::uint32_t{0}) continue;
    for (const std::uint32_t wrong : {limits[axis] + 1, std::uint32_t{0}}) {
      std::array<std::uint32_t, 3> grid{1, 1, 1};
      grid[axis] = wrong;
      const auto value = run(device, *program, {x.get(), y.get()}, grid);
      REQUIRE_FALSE(value.has_value());
      CHECK(value.error().code == StatusCode::invalid_argument);
      CHECK_THAT(value.error().message,
                 Catch::Contains(std::string("grid ") + "xyz"[axis] + " = " + std::to_string(wrong)) &&
                     Catch::Contains(std::to_string(limits[axis])));
    }
  }
}

TEST_CASE("opengl: a kernel that reaches beyond its bindings harms nothing", "[opengl][queue]") {
  OpenGl gl;
  if (!gl.usable()) return;
  Device& device = gl.device();
  KernelSource source = saxpy();
  source.text =
      "layout(local_size_x = 64) in;\n"
      "layout(std430, binding = 0) buffer X { float x[]; };\n"
      "layout(std430, binding = 1) buffer Y { float y[]; };\n"
      "void main() { uint i = gl_GlobalInvocationID.x; x[i] = 7.0; y[i] = 7.0; }\n";
  source.bindings = {Access::read_write};  // one; the text writes a second
  const auto beyond = build(device, source);
  const auto two = build(device, saxpy());
  const std::vector<float> ones(100, 1.0f);
  const auto before = buffer_of(device, ones);
  const auto x = buffer_of(device, ones);
  const auto after = buffer_of(device, ones);
  REQUIRE(run(device, *two, {before.get(), after.get()}, {2, 1, 1}).has_value());  // `after` lies at binding 1
  REQUIRE(run(device, *beyond, {x.get()}, {64, 1, 1}).has_value());                // 4096 lanes over 100 floats
  CHECK(contents(*x) == std::vector<float>(100, 7.0f));
  CHECK(contents(*before) == ones);
  CHECK(contents(*after) == std::vector<float>(100, 3.5f));
}

TEST_CASE("opengl: what a dispatch lacks is named", "[opengl][queue]") {
  OpenGl gl;
  if (!gl.usable()) return;
  Device& device = gl.device();
  const auto program = build(device, saxpy());
  const auto x = buffer_of(device, whole_numbers());
  const auto y = buffer_of(device, whole_numbers());
  CHECK(device.submit({}).error().code == StatusCode::invalid_argument);
  const auto missing = run(device, *program, {x.get()}, {1, 1, 1});
  REQUIRE_FALSE(missing.has_value());
  CHECK_THAT(missing.error().message, Catch::Contains("1 buffers, expected 2"));
  const auto empty = run(device, *program, {x.get(), nullptr}, {1, 1, 1});
  REQUIRE_FALSE(empty.has_value());
  CHECK_THAT(empty.error().message, Catch::Contains("binding 1 has no buffer"));
  auto other = gl.plugin().open("opengl:0");
  const auto foreign = build(*other, saxpy());
  const auto mixed = run(device, *foreign, {x.get(), y.get()}, {1, 1, 1});
  REQUIRE_FALSE(mixed.has_value());
  CHECK_THAT(mixed.error().message, Catch::Contains("another device"));
}

TEST_CASE("opengl: what a pass lacks is named with its number, and nothing of the dispatch runs", "[opengl][queue]") {
  OpenGl gl;
  if (!gl.usable()) return;
  Device& device = gl.device();
  const auto elsewhere = gl.plugin().open("opengl:0");
  const auto program = build(device, saxpy()), foreign_program = build(*elsewhere, saxpy());
  const auto x = buffer_of(device, std::vector<float>(64, 2.0f)), y = buffer_of(device, std::vector<float>(64, 1.0f)),
             foreign = buffer_of(*elsewhere, std::vector<float>(64, 1.0f));
  Buffer* const right[] = {x.get(), y.get()};
  Buffer* const wrong[] = {x.get(), foreign.get()};
  const PassLaunch good{program.get(), right, {1, 1, 1}};
  const struct {
    PassLaunch pass;
    const char* words;
  } cases[] = {{{nullptr, right, {1, 1, 1}}, " has no program"},
               {{foreign_program.get(), right, {1, 1, 1}}, ": the program belongs to another device"},
               {{program.get(), wrong, {1, 1, 1}}, ": binding 1: the buffer belongs to another device"},
               {{program.get(), std::span(right).first(1), {1, 1, 1}}, ": 1 buffers, expected 2"}};
  for (const auto& each : cases) {
    INFO(each.words);
    const PassLaunch passes[] = {good, good, each.pass};
    const auto value = device.submit({passes});
    REQUIRE_FALSE(value.has_value());
    CHECK(value.error().text() == std::string("invalid_argument: opengl:0: pass 2") + each.words);
  }
  CHECK(contents(*y) == std::vector<float>(64, 1.0f));
  CHECK(device.submit({}).error().message == "opengl:0: the dispatch has no passes");
  if (device.info().serializes) {
    CHECK(device.serialize(*foreign_program).error().text() ==
          "invalid_argument: opengl:0: the program belongs to another device");
  }
}

TEST_CASE("opengl: views have the bindings that the device has for them", "[opengl][queue]") {
  OpenGl gl;
  if (!gl.usable()) return;
  Device& device = gl.device();
  for (const View view : {View::texels, View::image}) {
    const std::uint32_t most =
        view == View::image ? device.info().max_image_bindings : device.info().max_texel_bindings;
    KernelSource source = saxpy();
    source.views.assign(most + 1, View::storage);
    source.views[most] = view;
    const auto built = device.build(source);
    REQUIRE_FALSE(built.has_value());
    CHECK(built.error().code == StatusCode::invalid_argument);
    CHECK_THAT(built.error().message,
               Catch::Contains("binding " + std::to_string(most) + " is viewed as " + std::string(to_string(view)) +
                               ", expected a binding below " + std::to_string(most)));
  }
}

TEST_CASE("opengl: a result is taken once, and that of no submission is not waited for", "[opengl][queue]") {
  OpenGl gl;
  if (!gl.usable()) return;
  Device& device = gl.device();
  const auto program = build(device, saxpy());
  const auto x = buffer_of(device, whole_numbers()), y = buffer_of(device, whole_numbers());
  REQUIRE(run(device, *program, {x.get(), y.get()}, {1, 1, 1}).has_value());
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}}) {
    INFO("submission " << value);
    const auto done = device.wait(value, Deadline::never());
    REQUIRE_FALSE(done.has_value());
    CHECK(done.error().code == StatusCode::not_found);
    CHECK_THAT(done.error().message, Catch::StartsWith("opengl:0: submission " + std::to_string(value)));
    CHECK_THAT(done.error().message, Catch::Contains(value == 1 ? "already" : "the last submission is 1"));
  }
}

TEST_CASE("opengl: a context for building that cannot be made is told, and the next build has one", "[opengl][queue]") {
  OpenGl gl(with_wrapping_egl());
  if (!gl.usable()) return;
  Device& device = gl.device();
  const auto program = build(device, saxpy());
  const auto x = buffer_of(device, whole_numbers()), y = buffer_of(device, whole_numbers());
  REQUIRE(run(device, *program, {x.get(), y.get()}, {1, 1, 1}).has_value());  // from here on builds have their own
  egl_switches().shared_contexts_to_fail = 1;
  KernelSource other = saxpy();
  other.constants[0].text = "4.0";
  const auto refused = device.build(other);
  const int left = egl_switches().shared_contexts_to_fail.exchange(0);
  CHECK(left == 0);
  REQUIRE_FALSE(refused.has_value());
  CHECK_THAT(refused.error().message, Catch::StartsWith("opengl:0: a context for building: "));
  const auto built = build(device, other);
  const auto z = buffer_of(device, std::vector<float>(64, 1.0f)), w = buffer_of(device, std::vector<float>(64, 2.0f));
  REQUIRE(run(device, *built, {w.get(), z.get()}, {1, 1, 1}).has_value());
  CHECK(contents(*z) == std::vector<float>(64, 9.0f));
}

TEST_CASE("opengl: a driver without native fences shares none", "[opengl][queue]") {
  OpenGl gl;
  if (!gl.usable()) return;
  if (gl.device().info().kind != DeviceKind::software) return;
  auto* const fences = dynamic_cast<FenceExchange*>(&gl.device());
  REQUIRE(fences != nullptr);
  const char* const words = "unsupported: opengl:0: the driver has no EGL_ANDROID_native_fence_sync";
  CHECK(fences->export_fence(1).error().text() == words);
  CHECK(fences->wait_for_fence(0).text() == words);
}

}  // namespace kiln::support
