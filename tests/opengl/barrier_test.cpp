// barrier() in users' kernels on a driver that moves reads of shared memory behind it: the constant "barrier()".
#include "codec/source_text.hpp"

#include <catch2/catch.hpp>

#include <cmath>

#include "opengl/support/kernels.hpp"

namespace kiln::support {
namespace {

constexpr std::size_t wide = 64;

// One workgroup of 64 lanes; `t` is the lane, `v` its input, `lane[]` shared; main() ends with dst[t] = result.
KernelSource kernel(const std::string& body, const std::string& before = "") {
  KernelSource source;
  source.dialect = Dialect::glsl;
  source.text =
      "#version 430\n"
      "layout(local_size_x = 64) in;\n"
      "layout(std430, binding = 0) readonly buffer In { float src[]; };\n"
      "layout(std430, binding = 1) buffer Out { float dst[]; };\n"
      "shared float lane[64];\n" +
      before + "void main() {\n  uint t = gl_LocalInvocationID.x;\n  float v = src[t];\n  float result;\n" + body +
      "  dst[t] = result;\n}\n";
  source.bindings = {Access::read, Access::read_write};
  return source;
}

// What each kernel below computes in this way: the value of the lane opposite, read before lane[] is used again.
struct Variation {
  std::string name;
  std::string body;
  std::string before;
};

const std::string opposite = "  lane[t] = v; barrier();\n  float other = lane[63u - t]; barrier();\n";
// The use of `other` stands behind the barrier, and the next write of lane[] behind the use.
const std::string again = "  float e = other + 0.5;\n  lane[t] = -1.0; barrier();\n  result = e + lane[t] + 0.5;\n";

std::vector<Variation> variations() {
  return {
      {"plain", opposite + again, ""},
      {"unbraced if",
       "  lane[t] = v; if (src[0] > -1.0) barrier();\n  float other = lane[63u - t];\n"
       "  if (src[0] < -1.0) lane[t] = 7.0; else barrier();\n" +
           again,
       ""},
      {"object-like macro", "  lane[t] = v; SYNC;\n  float other = lane[63u - t]; SYNC;\n" + again,
       "#define SYNC barrier()\n"},
      {"macro with arguments", "  lane[t] = v; AFTER(;)\n  float other = lane[63u - t]; AFTER(;)\n" + again,
       "#define AFTER(x) barrier() x\n"},
      {"macro of the name", "  lane[t] = v; NAME();\n  float other = lane[63u - t]; NAME();\n" + again,
       "#define NAME barrier\n"},
      {"function", "  lane[t] = v; sync();\n  float other = lane[63u - t]; sync();\n" + again,
       "void sync() { barrier(); }\n"},
      {"own macro of the name", opposite + again, "#define barrier() { barrier(); }\n"},
      {"own macro under a condition", opposite + again,
       "#ifndef barrier\n#define barrier() if (true) barrier()\n#endif\n#ifdef barrier\n#else\n#error "
       "removed\n#endif\n"},
      {"own macro removed", opposite + again,
       "#define barrier() no_such_function()\n#undef barrier  // the built-in one\n"},
      {"own macro that is left out", opposite + again, "#ifdef VULKAN\n#define barrier() controlBarrier()\n#endif\n"},
      {"blanks and comments",
       "  lane[t] = v; barrier /* all */ (\n  );\n  float other = lane[63u - t]; barrier ( ) ;\n" + again, ""},
      {"comma",
       "  lane[t] = v, barrier();\n  float other = lane[63u - t]; barrier(), lane[t] = -1.0, barrier();\n"
       "  result = other + lane[t] + 1.0;\n",
       ""},
      {"loop",
       "  float other = 0.0;\n  for (uint i = 0u; i < 3u; ++i) {\n    lane[t] = v + float(i); barrier();\n"
       "    float now = lane[63u - t] - float(i); barrier();\n    other = now + 0.5; lane[t] = -1.0; barrier();\n"
       "    other += lane[t] + 0.5;\n  }\n  result = other;\n",
       ""},
      {"header of a loop",
       "  float other = 0.0; lane[t] = v;\n  for (uint i = 0u; i < 1u; ++i, barrier()) { barrier();\n"
       "    float now = lane[63u - t]; barrier();\n    other = now; lane[t] = -1.0; }\n  result = other;\n",
       ""},
      {"switch",
       "  float other;\n  lane[t] = v;\n  switch (gl_NumWorkGroups.x) {\n    case 1u:\n      barrier();\n"
       "      float now = lane[63u - t]; barrier();\n      other = now; lane[t] = -1.0; barrier(); break;\n"
       "    default: other = 3.0;\n  }\n  result = other;\n",
       ""},
      {"text from another file", "#line 1 1\n" + opposite + "#line 12 0\n" + again, ""},
  };
}

std::vector<float> results(Device& device, const KernelSource& source, const std::vector<float>& input) {
  const auto program = device.build(source);
  INFO((program ? std::string() : program.error().text()));
  REQUIRE(program.has_value());
  const auto from = buffer_of(device, input);
  const auto to = buffer_of(device, std::vector<float>(input.size(), 100.0f), BufferUsage::readback);
  REQUIRE(run(device, **program, {from.get(), to.get()}, {1, 1, 1}).has_value());
  return contents(*to);
}

std::vector<float> fixed_results(Device& device, const KernelSource& source, const std::vector<float>& input) {
  const auto fixed = opengl::with_barrier(source, opengl::mesa_barrier);
  REQUIRE(fixed.has_value());
  return results(device, *fixed, input);
}

std::vector<float> counted_up() {
  std::vector<float> values(wide);
  for (std::size_t i = 0; i < wide; ++i) values[i] = static_cast<float>(i) / 8.0f;
  return values;
}

}  // namespace

TEST_CASE("opengl: barrier: the built-in function is replaced wherever it is called", "[opengl][barrier]") {
  OpenGl gl;
  if (!gl.usable()) return;
  const std::vector<float> input = counted_up();
  const std::vector<float> reversed(input.rbegin(), input.rend());
  for (const Variation& variation : variations()) {
    INFO(variation.name);
    CHECK(fixed_results(gl.device(), kernel(variation.body, variation.before), input) == reversed);
  }
  // A constant that holds the call.
  KernelSource constant = kernel("  lane[t] = v; SYNC;\n  float other = lane[63u - t]; SYNC;\n" + again);
  constant.constants = {{"SYNC", "barrier()"}};
  CHECK(fixed_results(gl.device(), constant, input) == reversed);
}

TEST_CASE("opengl: barrier: kernels with several reductions are right", "[opengl][barrier]") {
  OpenGl gl;
  if (!gl.usable()) return;
  const std::vector<float> input = counted_up();
  const std::string reduce_max =
      "  lane[t] = v; barrier();\n"
      "  for (uint k = 32u; k > 0u; k >>= 1) { if (t < k) lane[t] = max(lane[t], lane[t + k]); barrier(); }\n";
  const std::string reduce_sum =
      "  for (uint k = 32u; k > 0u; k >>= 1) { if (t < k) lane[t] = lane[t] + lane[t + k]; barrier(); }\n";
  std::vector<float> want(wide);

  double sum = 0;
  for (const float value : input) sum += std::exp(double(value) - double(input.back()));
  for (std::size_t i = 0; i < wide; ++i)
    want[i] = static_cast<float>(std::exp(double(input[i]) - double(input.back())) / sum);
  const auto softmax = fixed_results(gl.device(),
                                     kernel(reduce_max +
                                            "  float top = lane[0]; barrier();\n  float e = exp(v - top);\n"
                                            "  lane[t] = e; barrier();\n" +
                                            reduce_sum + "  result = e / lane[0];\n"),
                                     input);
  for (std::size_t i = 0; i < wide; ++i) CHECK(softmax[i] == Approx(want[i]).epsilon(1e-4));

  double mean = 0, variance = 0;
  for (const float value : input) mean += double(value) / wide;
  for (const float value : input) variance += (double(value) - mean) * (double(value) - mean) / wide;
  const auto normalized = fixed_results(gl.device(),
                                        kernel("  lane[t] = v; barrier();\n" + reduce_sum +
                                               "  float mean = lane[0] / 64.0; barrier();\n"
                                               "  float d = v - mean;\n  lane[t] = d * d; barrier();\n" +
                                               reduce_sum + "  result = d * inversesqrt(lane[0] / 64.0);\n"),
                                        input);
  for (std::size_t i = 0; i < wide; ++i) {
    CHECK(normalized[i] == Approx((double(input[i]) - mean) / std::sqrt(variance)).epsilon(1e-4).margin(1e-5));
  }

  const auto scanned = fixed_results(
      gl.device(),
      kernel("  lane[t] = v; barrier();\n  for (uint k = 1u; k < 64u; k <<= 1) {\n"
             "    float left = t >= k ? lane[t - k] : 0.0; barrier();\n    lane[t] += left; barrier();\n  }\n"
             "  result = lane[t];\n"),
      input);
  float total = 0;
  for (std::size_t i = 0; i < wide; ++i) CHECK(scanned[i] == (total += input[i]));

  const auto sorted = fixed_results(
      gl.device(),
      kernel("  lane[t ^ 37u] = v; barrier();\n  for (uint k = 2u; k <= 64u; k <<= 1) for (uint j = k >> 1; j > 0u; j "
             ">>= 1) {\n"
             "    float mine = lane[t], other = lane[t ^ j]; barrier();\n"
             "    bool low = (t & j) == 0u, up = (t & k) == 0u;\n"
             "    lane[t] = (low == up) ? min(mine, other) : max(mine, other); barrier();\n  }\n  result = lane[t];\n"),
      input);
  CHECK(sorted == input);
}

TEST_CASE("opengl: barrier: Mesa's compiler needs the replacement, and the setting decides", "[opengl][barrier]") {
  OpenGl gl;
  if (!gl.usable()) return;
  const bool mesa = gl.device().info().driver.find("Mesa") != std::string::npos;
  CHECK(gl.device().info().glsl_barrier == (mesa ? opengl::mesa_barrier : ""));
  OpenGl off({{"barrier_fix", std::string("off")}});
  CHECK(off.device().info().glsl_barrier.empty());
  OpenGl on({{"barrier_fix", std::string("on")}});
  CHECK(on.device().info().glsl_barrier == opengl::mesa_barrier);
  if (gl.device().info().driver != "Mesa 22.3.6") return;
  // The reason for all of this. A later Mesa may be right without it; then the replacement is only a cost.
  const std::vector<float> input = counted_up();
  CHECK(results(gl.device(), kernel(opposite + again), input) != std::vector<float>(input.rbegin(), input.rend()));
}

TEST_CASE("opengl: barrier: a text that cannot be changed is refused with its line", "[opengl][barrier]") {
  const auto refusal = [](const std::string& body, const std::string& before) {
    const auto fixed = opengl::with_barrier(kernel(body, before), opengl::mesa_barrier);
    REQUIRE(fixed.has_value());
    const auto text = opengl::assemble(*fixed);
    REQUIRE_FALSE(text.has_value());
    return text.error().message;
  };
  CHECK_THAT(refusal("", "void barrier() { }\n"), Catch::Contains("line 6: ") && Catch::Contains("barrier_fix"));
  CHECK_THAT(refusal("\n  barrier(1);\n", "#line 100\nvoid f() {}\n"), Catch::Contains("line 106: "));
  KernelSource none = kernel("  result = v;\n  memoryBarrierShared();\n");
  CHECK_FALSE(opengl::with_barrier(none, opengl::mesa_barrier).has_value());
}

}  // namespace kiln::support
