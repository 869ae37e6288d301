// A corpus of compute shaders for the cache's benchmarks: `simple` ones give program binaries of about 5 KB on Mesa,
// `large` ones of about 25 KB that take a software driver 100 ms and more to build. Each differs from the next in its
// constants, so that nothing is shared but the form.
#pragma once

#include <kiln/kernel.hpp>

#include <string>
#include <vector>

namespace kiln::bench {

// Binding 0 is read, binding 1 is written; one workgroup of 64 lanes needs 4096 floats in each.
inline KernelSource shader(std::string text) {
  KernelSource source;
  source.dialect = Dialect::glsl;
  source.text = std::move(text);
  source.bindings = {Access::read, Access::write};
  source.workgroup = {64, 1, 1};
  return source;
}

inline constexpr const char* shader_head =
    "layout(local_size_x = 64) in;\n"
    "layout(std430, binding = 0) readonly buffer In { float x[]; };\n"
    "layout(std430, binding = 1) writeonly buffer Out { float y[]; };\n";

inline KernelSource simple_shader(int number) {
  const std::string n = std::to_string(number);
  return shader(std::string(shader_head) +
                "void main() {\n"
                "  uint lane = gl_GlobalInvocationID.x;\n"
                "  float sum = 0.0;\n"
                "  for (uint r = 0u; r < 3u; ++r)\n"
                "    for (uint s = 0u; s < 3u; ++s) {\n"
                "      uint at = lane * 3u + r * 64u + s + " +
                n +
                "u;\n"
                "      if (at < 4096u) sum += x[at] * (float(r * 3u + s) + " +
                n +
                ".5);\n"
                "    }\n"
                "  y[lane] = max(sum, 0.0);\n"
                "}\n");
}

// Sixteen outputs a lane, kept in registers, over 3x3 taps written out.
inline KernelSource large_shader(int number) {
  std::string text = std::string(shader_head) + "void main() {\n  uint lane = gl_GlobalInvocationID.x;\n";
  constexpr int outputs = 16;
  for (int k = 0; k < outputs; ++k) text += "  float s" + std::to_string(k) + " = 0.0;\n";
  for (int r = 0; r < 3; ++r) {
    for (int s = 0; s < 3; ++s) {
      const std::string tap = std::to_string(r * 3 + s);
      text += "  { uint at = (lane * 4u + " + std::to_string(r * 61 + s + number) + "u) & 4095u; float v = x[at];\n";
      for (int k = 0; k < outputs; ++k) {
        text += "    s" + std::to_string(k) + " += v * x[(at + " + std::to_string(k * 9 + r * 3 + s + number) +
                "u) & 4095u];\n";
      }
      text += "  }\n";
    }
  }
  for (int k = 0; k < outputs; ++k) {
    text += "  y[lane * " + std::to_string(outputs) + "u + " + std::to_string(k) + "u] = max(s" + std::to_string(k) +
            ", 0.0);\n";
  }
  return shader(text + "}\n");
}

inline std::vector<KernelSource> corpus(const std::string& kind, int count) {
  std::vector<KernelSource> sources;
  for (int i = 0; i < count; ++i) sources.push_back(kind == "large" ? large_shader(i) : simple_shader(i));
  return sources;
}

}  // namespace kiln::bench
