// What orders the device's work: a software driver works inside each call and would forgive a missing barrier, fence or
// flush, so the calls themselves are looked at.
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "opengl/support/kernels.hpp"
#include "opengl/support/wrapping_egl.hpp"

namespace kiln::support {
namespace {

using What = GlCall::What;
using Calls = std::vector<GlCall>;

constexpr unsigned texture_fetch = 0x8, image_access = 0x20, buffer_update = 0x200, shader_storage = 0x2000,
                   client_mapped = 0x4000;
constexpr unsigned next_pass = texture_fetch | image_access | shader_storage;

// Whether the host reads by a mapping what the device wrote.
enum class Reads : std::uint8_t { invalid = 0, mapped, by_call };

// The first rule that the calls break; empty: none.
std::string broken(const Calls& calls, Reads reads) {
  unsigned unseen = 0;  // by whom the last writes are not seen yet
  bool unflushed = false;
  for (const GlCall& call : calls) {
    switch (call.what) {
      case What::dispatched:
        if ((unseen & next_pass) != 0) return "a pass begins before it may see what the one before wrote";
        unseen |= next_pass | buffer_update | client_mapped;
        break;
      case What::copied:
        if ((unseen & buffer_update) != 0) return "a copy begins before it may see what a pass wrote";
        unseen |= client_mapped;
        break;
      case What::barred:
        unseen &= ~call.bits;
        break;
      case What::fenced:
        if (reads == Reads::mapped && (unseen & client_mapped) != 0) return "a fence before what is mapped is seen";
        unflushed = true;
        break;
      case What::flushed:
        unflushed = false;
        break;
      case What::waited:
        if (unflushed) return "a wait for a fence that was not flushed";
        break;
      default:
        break;
    }
  }
  return {};
}

std::size_t count(const Calls& calls, What what) {
  return static_cast<std::size_t>(
      std::count_if(calls.begin(), calls.end(), [&](const GlCall& call) { return call.what == what; }));
}

constexpr std::size_t jobs = 3;

// Jobs of two passes, each with its upload, its wait and its readback, the way they are in a steady stream.
Calls log_of_jobs(Device& device) {
  const std::vector<float> values(64, 3.0f);
  const auto square = build(device, square_into_scratch());
  const auto add = build(device, add_neighbour());
  const auto in = buffer_of(device, values);
  const auto scratch = buffer_of(device, values, BufferUsage::storage);
  const auto out = buffer_of(device, values, BufferUsage::readback);
  Buffer* const first[] = {in.get(), scratch.get()};
  Buffer* const second[] = {scratch.get(), out.get()};
  const PassLaunch passes[] = {{square.get(), first, {1, 1, 1}}, {add.get(), second, {1, 1, 1}}};
  const auto run_one = [&] {
    REQUIRE(in->write(0, std::as_bytes(std::span(values))).ok());
    const auto value = device.submit({passes});
    REQUIRE(value.has_value());
    REQUIRE(device.wait(*value, Deadline::never()).has_value());
    CHECK(contents(*out) == std::vector<float>(64, 18.0f));
  };
  run_one();  // what is made at the first use is there now
  begin_gl_log();
  for (std::size_t job = 0; job < jobs; ++job) run_one();
  return end_gl_log();
}

OpenGl opened(const char* mapping) {
  return OpenGl({{"egl_library", std::string(KILN_WRAPPING_EGL)}, {"persistent_mapping", std::string(mapping)}});
}

}  // namespace

TEST_CASE("opengl: barriers, fences and flushes stand where what follows needs them", "[opengl][ordering]") {
  for (const char* mapping : {"always", "staging", "never"}) {
    INFO("persistent_mapping = " << mapping);
    OpenGl gl = opened(mapping);
    if (!gl.usable()) return;
    const Reads reads = std::string(mapping) == "never" ? Reads::by_call : Reads::mapped;
    const Calls calls = log_of_jobs(gl.device());
    CHECK(broken(calls, reads) == "");
    CHECK(count(calls, What::dispatched) == 2 * jobs);
    CHECK(count(calls, What::fenced) == jobs);  // one a submission, however many passes and copies it has
    CHECK(count(calls, What::flushed) == jobs);
    CHECK(count(calls, What::waited) >= jobs);
    CHECK(count(calls, What::mapped) == 0);  // a buffer is mapped once, for good
    CHECK(count(calls, What::copied) == (std::string(mapping) == "always" ? 0 : 2 * jobs));

    // None of them is there for nothing: without it a rule is broken. What follows the last dispatch of all has nobody
    // after it who would notice, so the last job is left out.
    std::size_t needed = 0;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (calls[i].what != What::barred && calls[i].what != What::flushed) continue;
      if (count({calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(i)}, What::fenced) + 1 > jobs - 1) break;
      Calls without = calls;
      without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
      INFO("call " << i << " of " << calls.size());
      CHECK(broken(without, reads) != "");
      ++needed;
    }
    CHECK(needed >= jobs);
  }
}

TEST_CASE("opengl: what a pass left in device memory is read after a barrier, by a fence of its own",
          "[opengl][ordering]") {
  for (const char* mapping : {"staging", "never"}) {
    INFO("persistent_mapping = " << mapping);
    OpenGl gl = opened(mapping);
    if (!gl.usable()) return;
    Device& device = gl.device();
    const auto program = build(device, saxpy());
    const auto x = buffer_of(device, std::vector<float>(64, 1.0f), BufferUsage::storage);
    const auto y = buffer_of(device, std::vector<float>(64, 1.0f), BufferUsage::storage);
    const bool staged = std::string(mapping) == "staging";
    if (staged) contents(*y);  // the staging buffers are made
    begin_gl_log();
    REQUIRE(run(device, *program, {x.get(), y.get()}, {1, 1, 1}).has_value());
    const auto values = contents(*y);
    const Calls calls = end_gl_log();
    CHECK(values == std::vector<float>(64, 3.5f));
    CHECK(broken(calls, staged ? Reads::mapped : Reads::by_call) == "");
    CHECK(count(calls, What::copied) == 1);
    CHECK(count(calls, What::fenced) == (staged ? 2u : 1u));
    CHECK(count(calls, What::flushed) == (staged ? 2u : 1u));
  }
}

TEST_CASE("opengl: a staged read waits for its copy or for the loss of the context", "[opengl][ordering]") {
  constexpr unsigned innocent_context_reset = 0x8254;
  OpenGl gl = opened("staging");
  if (!gl.usable()) return;
  const std::vector<float> values(64, 3.0f);
  const auto buffer = buffer_of(gl.device(), values, BufferUsage::storage);
  contents(*buffer);  // the staging buffers are made
  egl_switches().waits_to_expire = 3;
  begin_gl_log();
  const std::vector<float> found = contents(*buffer);
  const Calls calls = end_gl_log();
  CHECK(egl_switches().waits_to_expire.exchange(0) == 0);
  CHECK(found == values);
  CHECK(count(calls, What::fenced) == 1);
  CHECK(count(calls, What::waited) >= 4);  // three that expire, and what succeeds

  egl_switches().waits_to_expire = 3;
  egl_switches().reset_status = innocent_context_reset;
  std::byte bytes[4] = {};
  const Status lost = buffer->read(0, bytes);
  egl_switches().reset_status = 0;
  CHECK(egl_switches().waits_to_expire.exchange(0) == 2);  // the first one that expires asks for the context
  CHECK(lost.code == StatusCode::device_lost);
  CHECK_THAT(lost.message, Catch::Contains("GL_INNOCENT_CONTEXT_RESET"));
}

}  // namespace kiln::support
