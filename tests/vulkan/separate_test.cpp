// Textures and samplers that GLSL for Vulkan declares apart.
#include "vulkan/kernel_under_test.hpp"

namespace kiln::vulkan {
namespace {

const std::vector<float> four{1, 2, 3, 4};
constexpr auto linear = TextureFilter::linear, nearest = TextureFilter::nearest;

Kernel& with_texture(Kernel& kernel, std::string name, const std::vector<float>& values = four) {
  return kernel.texture(BindingKind::sampler, Access::read, std::move(name), values, DType::f32,
                        {static_cast<std::int64_t>(values.size() / 2), 2});
}

// A kernel with the texture t.
Kernel textured(const std::string& declarations, const std::string& expression) {
  Kernel kernel(declarations, expression);
  return with_texture(kernel, "t");
}

constexpr const char* apart = "uniform texture2D t; uniform sampler s;\n";

}  // namespace

TEST_CASE("vulkan: a texture is read through a sampler of its own", "[vulkan][interface][separate]") {
  if (!Vulkan::instance().usable()) return;
  const std::string middle = "texture(sampler2D(t, s), vec2(0.5)).r";
  check(textured(apart, middle).sampler("s", linear), {2.5F});
  check(textured(apart, middle).sampler("s"), {2.5F});  // linear, as for a sampler with its texture
  check(textured(apart, "texture(sampler2D(t, s), vec2(0.6)).r").sampler("s", nearest), {4});
  check(textured(apart, "texture(sampler2D(t, s), vec2(1.25, 0.25)).r").sampler("s", nearest), {2});
  check(textured(apart, "texture(sampler2D(t, s), vec2(1.25, 0.25)).r").sampler("s", nearest, TextureWrap::repeat),
        {1});
  check(textured(apart, "texture(sampler2D(t, s), vec2(3.25, 0.25)).r").sampler("s", nearest, TextureWrap::border),
        {0});
  check(textured("layout(set = 1, binding = 3) uniform texture2D t; layout(set = 2, binding = 3) uniform sampler s;\n",
                 "texelFetch(sampler2D(t, s), ivec2(i % 2, i / 2 % 2), 0).r")
            .sampler("s"),
        {1, 2, 3, 4});
}

TEST_CASE("vulkan: one texture has several samplers, and one sampler several textures",
          "[vulkan][interface][separate]") {
  if (!Vulkan::instance().usable()) return;
  check(textured("uniform texture2D t; uniform sampler a; uniform sampler b;\n",
                 "i % 2 == 0 ? texture(sampler2D(t, a), vec2(0.5)).r : texture(sampler2D(t, b), vec2(0.75)).r")
            .sampler("a", linear)
            .sampler("b", nearest),
        {2.5F, 4, 2.5F, 4});
  Kernel kernel("uniform texture2D t[2]; uniform sampler s;\n",
                "texture(sampler2D(t[0], s), vec2(0.75)).r + texture(sampler2D(t[1], s), vec2(0.25)).r");
  with_texture(kernel, "t[0]");
  check(with_texture(kernel, "t[1]", {10, 20, 30, 40}).sampler("s", nearest), {14});
  check(textured(
            "uniform texture2D t; uniform sampler s[2];\n",
            "texture(sampler2D(t, s[0]), vec2(1.25, 0.25)).r * 10.0 + texture(sampler2D(t, s[1]), vec2(1.25, 0.25)).r")
            .sampler("s[0]", nearest)
            .sampler("s[1]", nearest, TextureWrap::repeat),
        {21});
  check(textured(
            "uniform texture2D t; uniform sampler s;\n"
            "float read(texture2D from, sampler through) { return texture(sampler2D(from, through), vec2(0.5)).r; }\n",
            "read(t, s)")
            .sampler("s", linear),
        {2.5F});
}

TEST_CASE("vulkan: a texture without a sampler is fetched", "[vulkan][interface][separate]") {
  if (!Vulkan::instance().usable()) return;
  const std::string head =
      "#version 450\n#extension GL_EXT_samplerless_texture_functions : require\nlayout(local_size_x = 64) in;\n";
  check(textured(head + "uniform texture2D t;\n", "texelFetch(t, ivec2(i % 2, i / 2 % 2), 0).r"), {1, 2, 3, 4});
  check(textured(head + "uniform texture2D t;\n", "textureSize(t, 0).x"), {2});
  check(Kernel(head + "uniform utextureBuffer t;\n", "texelFetch(t, int(i % 3)).r")
            .texture(BindingKind::sampler, Access::read, "t", std::vector<std::uint32_t>{7, 8, 9}, DType::u32, {3}),
        {7, 8, 9});
  check(Kernel(head + "uniform texture3D t;\n", "texelFetch(t, ivec3(0, 0, i % 3), 0).r")
            .texture(BindingKind::sampler, Access::read, "t", std::vector<float>{5, 6, 7}, DType::f32, {3, 1, 1}),
        {5, 6, 7});
}

TEST_CASE("vulkan: a sampler of integers does not filter", "[vulkan][interface][separate]") {
  if (!Vulkan::instance().usable()) return;
  const auto integers = [](const std::string& declarations, const std::string& expression) {
    return Kernel(declarations, expression)
        .texture(BindingKind::sampler, Access::read, "u", std::vector<std::uint16_t>{7, 8}, DType::u16, {1, 2});
  };
  const std::string declared = "uniform utexture2D u; uniform sampler s;\n";
  const std::string read = "texture(usampler2D(u, s), vec2(0.75, 0.5)).r";
  check(integers(declared, read).sampler("s"), {8});
  check(integers(declared, read).sampler("s", nearest, TextureWrap::border), {8});
  refuse(integers(declared, read).sampler("s", linear), "reads integers");
  refuse(integers(declared +
                      "uint through(utexture2D from, sampler x) { return texture(usampler2D(from, x), vec2(0)).r; }\n",
                  "through(u, s)")
             .sampler("s", linear),
         "reads integers");
  Kernel both(declared + "uniform texture2D t;\n", read + " + uint(texture(sampler2D(t, s), vec2(0.75)).r)");
  both.texture(BindingKind::sampler, Access::read, "u", std::vector<std::uint16_t>{7, 8}, DType::u16, {1, 2});
  with_texture(both, "t");
  check(Kernel(both).sampler("s"), {12});
  refuse(Kernel(both).sampler("s", linear), "samplers.s: reads integers and floating-point numbers");
  refuse(Kernel(both).sampler("s", nearest, TextureWrap::border), "no common border colour");
  // A fetch reads no sampler: its integers say nothing about s.
  check(textured("uniform texture2D t; uniform utexture2D u; uniform sampler s;\n",
                 "texelFetch(usampler2D(u, s), ivec2(1, 0), 0).r + texture(sampler2D(t, s), vec2(0.75)).r")
            .texture(BindingKind::sampler, Access::read, "u", std::vector<std::uint16_t>{7, 8}, DType::u16, {1, 2})
            .sampler("s", nearest, TextureWrap::border),
        {12});
}

TEST_CASE("vulkan: what a job lacks for textures and samplers apart is named", "[vulkan][interface][separate]") {
  if (!Vulkan::instance().usable()) return;
  const std::string read = "texture(sampler2D(t, s), vec2(0.5)).r";
  refuse(textured(apart, read), "separate sampler s (binding 0): not provided by the job. Add samplers = { s = { ");
  refuse(Kernel(apart, read).sampler("s"), "sampler texture2D t");
  refuse(textured(apart, read).sampler("s").sampler("more"), "samplers.more: the program has no such separate sampler");
  refuse(textured("uniform sampler2D t;\n", "texture(t, vec2(0.5)).r").sampler("s"),
         "no such separate sampler (it has none)");
  Kernel given(apart, read);
  given.texture(BindingKind::sampler, Access::read, "t", four, DType::f32, {2, 2}, linear);
  refuse(given.sampler("s"), "Set filter and wrap for the sampler instead");
  refuse(textured("uniform texture2D t; uniform samplerShadow s;\n", "texture(sampler2DShadow(t, s), vec3(0.5))")
             .sampler("s"),
         "separate sampler s (binding 0): the program compares depths");
  check(textured("uniform texture2D t; uniform sampler s;\n", "9").sampler("s"), {9});
}

}  // namespace kiln::vulkan
