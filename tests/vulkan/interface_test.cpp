// Resources of users' kernels on Vulkan: GLSL written for OpenGL, and GLSL written for Vulkan.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <string>

#include <kiln/program_interface.hpp>

#include "vulkan/kernel_under_test.hpp"

namespace kiln::vulkan {
TEST_CASE("vulkan: plain uniforms of OpenGL's GLSL have the job's values", "[vulkan][interface]") {
  if (!Vulkan::instance().usable()) return;
  check(Kernel("uniform float gain;\n", "gain * i").number("gain", 2.5), {0, 2.5F, 5});
  check(Kernel("uniform int a; uniform uint b;\n", "a + int(b)").integer("a", -3).integer("b", 5), {2, 2});
  check(Kernel("uniform bool on;\n", "on ? 7 : 8").uniform<std::int64_t>("on", Uniform::Type::boolean, {}, {1}), {7});
  check(Kernel("uniform vec3 v;\n", "v[i % 3]").uniform<double>("v", Uniform::Type::number, {3}, {1, 2, 3}), {1, 2, 3});
  check(Kernel("uniform float a[3];\n", "a[i % 3]").uniform<double>("a", Uniform::Type::number, {3}, {4, 5, 6}),
        {4, 5, 6, 4});
  check(Kernel("uniform mat2x3 m;\n", "m[i / 3 % 2][i % 3]")  // rows: 3, columns: 2
            .uniform<double>("m", Uniform::Type::number, {3, 2}, {1, 4, 2, 5, 3, 6}),
        {1, 2, 3, 4, 5, 6});
  check(Kernel("struct L { vec2 p; float q; };\nuniform L l[2];\n", "l[1].q + l[0].p.y")
            .number("l[1].q", 10)
            .uniform<double>("l[0].p", Uniform::Type::number, {2}, {1, 2})
            .number("l[0].q", 0)
            .uniform<double>("l[1].p", Uniform::Type::number, {2}, {0, 0}),
        {12});
}

TEST_CASE("vulkan: the built-in constants of GLSL are the device's limits", "[vulkan][interface]") {
  if (!Vulkan::instance().usable()) return;
  const DeviceInfo& info = Vulkan::instance().device()->info();
  const auto number = [](std::uint32_t limit) { return static_cast<float>(std::min(limit, 2147483647U)); };
  const float x = number(info.max_workgroup[0]), y = number(info.max_workgroup[1]), z = number(info.max_workgroup[2]);
  check(Kernel("", "gl_MaxComputeWorkGroupSize[i % 3]"), {x, y, z});
  check(Kernel("#define LIMIT(of) gl_ ## Max ## of\n", "LIMIT(ComputeWorkGroupSize)[i % 3]"), {x, y, z});
  check(Kernel("", "NAME[i % 3]").constant("NAME", "gl_MaxComputeWorkGroupSize"), {x, y, z});
  check(Kernel("", "gl_MaxComputeWorkGroupCount[i % 3]"),
        {number(info.max_grid[0]), number(info.max_grid[1]), number(info.max_grid[2])});
  check(Kernel("", "gl_MaxComputeImageUniforms"), {number(info.max_image_bindings)});
  check(Kernel("", "gl_MaxComputeAtomicCounterBuffers"), {number(info.max_bindings)});
  check(Kernel("shared int kept[gl_MaxComputeWorkGroupSize.x];\n", "(kept[i] = int(i), kept[i] + kept.length())"),
        {x, x + 1});
  refuse(Kernel("#version 450\nlayout(local_size_x = 1048576) in;\n", "gl_MaxComputeWorkGroupSize.x"),
         "mine.comp:2: ERROR: 'local_size' : too large; see gl_MaxComputeWorkGroupSize");
  refuse(Kernel("#version 450\nlayout(local_size_x = 1048576) in;\n", "1"), "a workgroup of 1048576x1x1, the device");
}

TEST_CASE("vulkan: atomic counters may have any binding", "[vulkan][interface]") {
  if (!Vulkan::instance().usable()) return;
  check(Kernel("layout(binding = 7) uniform atomic_uint a;\n", "atomicCounter(a)").input<std::uint32_t>({5}, "a"), {5});
  check(Kernel("layout(binding = 7) uniform atomic_uint a;\n", "atomicCounter(a) + uint(gl_MaxProgramTexelOffset > 0)")
            .input<std::uint32_t>({5}, "a"),
        {6});
}

TEST_CASE("vulkan: GLSL ES counts with atomic counters", "[vulkan][interface]") {
  if (!Vulkan::instance().usable()) return;
  const std::string text =
      "#version 310 es\nprecision highp float;\nlayout(local_size_x = 64) in;\n"
      "layout(binding = 7) uniform atomic_uint a;\n";
  check(Kernel(text, "(atomicCounterIncrement(a) - 5u) / 64u").input<std::uint32_t>({5}, "a"), {0});
  check(Kernel(text, "(atomicCounterDecrement(a) + 28u) / 64u").input<std::uint32_t>({100}, "a"), {1});
}

TEST_CASE("vulkan: extensions that the version has are asked for in vain, and keywords of Vulkan are named",
          "[vulkan][interface]") {
  if (!Vulkan::instance().usable()) return;
  check(Kernel("#version 450\n#extension GL_ARB_arrays_of_arrays : require\n #  extension GL_ARB_texture_query_levels: "
               "enable\r\nlayout(local_size_x = 64) in;\n",
               "7"),
        {7});
  refuse(
      Kernel("#version 450\n#extension GL_ARB_arrays_of_arrays : require\nlayout(local_size_x = 64) in;\nint x = y;\n",
             "7"),
      "mine.comp:4:");
  refuse(Kernel("float texture2D(float x) { return x; }\n", "texture2D(1.0)"), "rename it, or use an opengl device");
}

TEST_CASE("vulkan: an array of arrays of atomic counters takes the bytes of all of them", "[vulkan][interface]") {
  if (!Vulkan::instance().usable()) return;
  const Kernel kernel("layout(binding = 0, offset = 4) uniform atomic_uint a[2][3];\n", "atomicCounter(a[1][i % 3])");
  check(Kernel(kernel).input<std::uint32_t>({0, 1, 2, 3, 4, 5, 6}, "a[0]"), {4, 5, 6, 4});
  refuse(Kernel(kernel).input<std::uint32_t>({0, 1, 2, 3, 4, 5}, "a[1]"), "28 bytes");
  refuse(kernel, "atomic counter atomic_uint[3] a[1] (binding 0)");
}

TEST_CASE("vulkan: which uniforms are bool is what the declarations say", "[vulkan][interface]") {
  if (!Vulkan::instance().usable()) return;
  const auto on = [](Kernel kernel, const char* name, std::int64_t value) {
    return kernel.uniform<std::int64_t>(name, Uniform::Type::boolean, {}, {value});
  };
  check(Kernel("// a bool has no defined size here, so uint flag holds 0, 1 or 2\nuniform uint flag;\n", "flag")
            .integer("flag", 2),
        {2});
  check(
      on(on(Kernel("uniform bool fast,\n  exact = /* bool */ false;\n", "(fast ? 1 : 0) + (exact ? 2 : 0)"), "fast", 1),
         "exact", 1),
      {3});
  check(Kernel("uniform uint done;\nbool f(in uint q, bool done) { bool other = done; return other; }\n",
               "done + (f(1, true) ? 1 : 0)")
            .integer("done", 5),
        {6});
  check(on(Kernel("layout(push_constant) uniform P { bool on; uint n; } p;\n", "p.on ? p.n : 7").integer("n", 3), "on",
           1),
        {3});
  check(on(Kernel("struct S { bvec2 unused; bool on; };\nlayout(std140) uniform B { S s; uint n; } b;\n",
                  "(b.s.on ? 10 : 0) + b.n")
               .integer("B.n", 3)
               .uniform<std::int64_t>("B.s.unused", Uniform::Type::boolean, {2}, {0, 0}),
           "B.s.on", 1),
        {13});
}

TEST_CASE("vulkan: push constants and uniform blocks have the job's values", "[vulkan][interface]") {
  if (!Vulkan::instance().usable()) return;
  check(Kernel("layout(push_constant) uniform Push { float gain; uint n; } push;\n", "i < push.n ? push.gain : 0.0")
            .number("gain", 2.5)
            .integer("n", 2),
        {2.5F, 2.5F, 0});
  check(Kernel("layout(std140) uniform Params { float scale; vec3 v[2]; };\n", "scale * v[1].z")
            .number("Params.scale", 3)
            .uniform<double>("Params.v", Uniform::Type::number, {2, 3}, {0, 0, 0, 0, 0, 7}),
        {21});
  check(Kernel("layout(std140, row_major) uniform P { mat3x2 m; };\n", "m[i / 2 % 3][i % 2]")
            .uniform<double>("P.m", Uniform::Type::number, {2, 3}, {1, 2, 3, 4, 5, 6}),
        {1, 4, 2, 5, 3, 6});
  check(Kernel("layout(std140, binding = 3) uniform P { vec4 v[2]; } p;\n", "p.v[1][i % 4]")
            .input<float>({0, 0, 0, 0, 5, 6, 7, 8}, "P"),
        {5, 6, 7, 8});
}

TEST_CASE("vulkan: uniforms of 8 and 16 bits have the job's values", "[vulkan][interface]") {
  if (!Vulkan::instance().usable()) return;
  const std::string types =
      "#version 450\n#extension GL_EXT_shader_explicit_arithmetic_types : require\n"
      "#extension GL_EXT_shader_8bit_storage : require\n#extension GL_EXT_shader_16bit_storage : require\n"
      "layout(local_size_x = 64) in;\n";
  const std::string block =
      types + "layout(std140, binding = 3) uniform P { float16_t a; i16vec3 b; uint8_t c[2]; f16mat2x3 m; } p;\n";
  const auto set = [](Kernel kernel) {
    return kernel.number("P.a", 0.5)
        .uniform<std::int64_t>("P.b", Uniform::Type::integer, {3}, {-1, 2, -300})
        .uniform<std::int64_t>("P.c", Uniform::Type::integer, {2}, {7, 255})
        .uniform<double>("P.m", Uniform::Type::number, {3, 2}, {1, 4, 2, 5, 3, 6});
  };
  check(set(Kernel(block, "float(p.a) + float(p.b.z) + float(p.c[1])")), {-44.5F});
  check(set(Kernel(block, "p.m[i / 3 % 2][i % 3]")), {1, 2, 3, 4, 5, 6});
  check(Kernel(block, "float(p.a) + float(p.c[1])")
            .input<std::uint16_t>({0x3800, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0,
                                   0,      0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
                                  "P"),
        {9.5F});
  check(Kernel(types + "layout(push_constant) uniform Push { float16_t gain; uint16_t n; } push;\n",
               "float(push.gain) * float(push.n)")
            .number("gain", 2.5)
            .integer("n", 60000),
        {150000});
  refuse(set(Kernel(block, "float(p.a)")).integer("P.none", 1), "P.none");
}

TEST_CASE("vulkan: storage blocks are found by name, number and set", "[vulkan][interface]") {
  if (!Vulkan::instance().usable()) return;
  const std::vector<float> a = ramp(), b(lanes, 100);
  check(Kernel("layout(std430) readonly buffer A { float a[]; };\nlayout(std430) readonly buffer B { float b[]; };\n",
               "a[i] + b[i]")  // without bindings, both have binding 0, and names tell them apart
            .input(a, "A")
            .input(b, "B"),
        {100, 101, 102});
  check(Kernel("layout(std430, set = 0, binding = 1) readonly buffer A { float a[]; };\n"
               "layout(std430, set = 2, binding = 1) readonly buffer B { float b[]; };\n",
               "a[i] - b[i]")
            .input(a, "A")
            .input(b, "B"),
        {-100, -99});
  check(Kernel("layout(std430, binding = 2) readonly buffer A { float a[]; } both[2];\n", "both[0].a[i] + both[1].a[i]")
            .input(a, "A[0]")
            .input(b, "A[1]"),
        {100, 101});
  // The array takes one binding: the next is no number of its second element.
  const auto next_to_array = [] {
    return Kernel(
        "layout(std430, binding = 2) readonly buffer A { float a[]; } both[2];\n"
        "layout(std430, binding = 3) readonly buffer B { float b[]; };\n",
        "both[0].a[i] + both[1].a[i] - b[i]");
  };
  check(next_to_array().input(a, "A[0]").input(b, "A[1]").input(b, "B"), {0, 1});
  refuse(next_to_array().input(a, "", 2).input(b, "", 3), "A[1]");
  check(Kernel("layout(std430, binding = 5) readonly buffer A { float a[]; };\n"
               "layout(std430, binding = 5) readonly buffer V { vec4 v[]; };\n",
               "a[i] + v[i / 4u][i % 4u]")  // two views of one buffer
            .input(a, "", 5),
        {0, 2, 4, 6});
}

TEST_CASE("vulkan: a length that is an expression of specialization constants has its value", "[vulkan][interface]") {
  if (!Vulkan::instance().usable()) return;
  const std::string number = "layout(constant_id = 1) const int N = 3;\n";
  const std::string sized =
      number + "layout(std430, binding = 0) readonly buffer A { float a[(N > 2 ? N : 2) * 20 + 4]; };\n";
  check(Kernel(sized, "a[i]").input(ramp(), "A"), {0, 1, 2});
  refuse(Kernel(sized, "a[i]").input(std::vector<float>(8), "A"),
         "takes at least 256 bytes, and the job provides 32 bytes");
  check(Kernel(number + "layout(std140) uniform B { vec4 v[N * 2 - 4]; };\n", "v[i % 2].y")
            .uniform<double>("B.v", Uniform::Type::number, {2, 4}, {0, 1, 0, 0, 0, 2, 0, 0}),
        {1, 2, 1});
  refuse(Kernel(number + "shared float s[N * 100000];\n", "(s[i] = i, barrier(), s[i])"), "1200000 bytes of shared");
  // glslang places what follows such an array as if it had one element.
  refuse(Kernel(number + "layout(std140) uniform B { vec4 v[N * 2]; float z; };\n", "v[5].y + z").number("B.z", 1),
         "B: v overlaps");
  refuse(Kernel(number + "struct S { float a[N + N]; float b; };\nlayout(std430) readonly buffer A { S s[]; };\n",
                "s[i].a[5] + s[i].b")
             .input(ramp(), "A"),
         "A: s[].a overlaps");
}

TEST_CASE("vulkan: a block of values whose size 32 bits do not hold is refused", "[vulkan][interface]") {
  if (!Vulkan::instance().usable()) return;
  const std::string members = "{ uvec4 a; uvec4 v[268435455]; };\n";
  const std::string words = ": 4294967296 bytes, expected at most 4294967280";
  refuse(Kernel("layout(std140) uniform B " + members, "a.x"), "uniform block B" + words);
  refuse(Kernel("layout(push_constant) uniform P " + members, "a.x"), "push constants" + words);
  refuse(Kernel("uniform vec4 g[268435456];\n", "g[i].x"), "uniforms" + words);
}

TEST_CASE("vulkan: GLSL that Vulkan does not allow is refused before the driver has it", "[vulkan][interface]") {
  if (!Vulkan::instance().usable()) return;
  refuse(Kernel("layout(std140) uniform B { float x; float z; } b[2][2];\n", "b[0][0].z + b[1][0].z"),
         "variable b: an array of arrays of resources");
  refuse(Kernel("uniform sampler2D s[2][2];\n", "texelFetch(s[1][0], ivec2(0), 0).r"), "array of arrays of resources");
  refuse(Kernel("uniform sampler2D s;\n", "textureQueryLod(s, vec2(0.5)).x"),
         "translates the text to invalid SPIR-V (SPIR-V validation: mine.comp:5: instruction ");
}

TEST_CASE("vulkan: the size of the workgroup is declared before it is used", "[vulkan][interface]") {
  if (!Vulkan::instance().usable()) return;
  // The builder's text declares 64 lanes in front.
  check(Kernel("#define SIZE gl_WorkGroupSize.x\n", "SIZE"), {64, 64});
  refuse(Kernel("#version 450\nuint size() { return gl_WorkGroupSize.x; }\nlayout(local_size_x = 64) in;\n", "size()"),
         "mine.comp: gl_WorkGroupSize is used before the local size is declared");
  check(Kernel("#version 450\n// gl_WorkGroupSize\n#define SIZE gl_WorkGroupSize.x\nlayout(local_size_x = 64) in;\n"
               "uint size() { return SIZE; }\n",
               "size()"),
        {64, 64});
  // A variable of that name is no declaration.
  check(Kernel("uint size() { uint local_size_x = gl_WorkGroupSize.x; return local_size_x; }\n", "size()"), {64, 64});
  check(Kernel("#version 450\nlayout(local_size_x = (32 * 2)) in;\nconst uint local_size_y = gl_WorkGroupSize.x;\n",
               "local_size_y"),
        {64, 64});
  refuse(Kernel("#version 450\nuint local_size_x = gl_WorkGroupSize.x;\n#define SIZES(x) layout(local_size_x = x) in\n"
                "SIZES(64);\n",
                "local_size_x"),
         "mine.comp: gl_WorkGroupSize is used before the local size is declared");
}

TEST_CASE("vulkan: samplers and images have the job's texels", "[vulkan][interface][image]") {
  if (!Vulkan::instance().usable()) return;
  const auto sampler = BindingKind::sampler, image = BindingKind::image;
  const std::vector<float> four{1, 2, 3, 4};
  check(Kernel("uniform sampler2D s;\n", "texelFetch(s, ivec2(i % 2, i / 2 % 2), 0).r")
            .texture(sampler, Access::read, "s", four, DType::f32, {2, 2}),
        {1, 2, 3, 4});
  check(Kernel("uniform sampler2D s;\n", "texture(s, vec2(0.5)).r")
            .texture(sampler, Access::read, "s", four, DType::f32, {2, 2}, TextureFilter::linear),
        {2.5F});
  // Three channels of bytes become four, whose alpha is 1.
  check(Kernel("uniform sampler2D s;\n", "round(texelFetch(s, ivec2(0), 0)[i % 4] * 255.0)")
            .texture(sampler, Access::read, "s", std::vector<std::uint8_t>{51, 102, 153}, DType::u8, {1, 1, 3}),
        {51, 102, 153, 255});
  check(
      Kernel("uniform sampler1D s;\n", "texelFetch(s, 0, 0)[i % 4]")
          .texture(sampler, Access::read, "s", std::vector<std::uint16_t>{0x3c00, 0x4000, 0xbc00}, DType::f16, {1, 3}),
      {1, 2, -1, 1});
  check(Kernel("uniform sampler1D s;\n", "round(texelFetch(s, 0, 0)[i % 4] * 127.0)")
            .texture(sampler, Access::read, "s", std::vector<std::int8_t>{-128, 64, 127}, DType::i8, {1, 3}),
        {-127, 64, 127, 127});
  // Signed samples are -1 to 1, as on OpenGL.
  check(Kernel("layout(rgba32f) readonly uniform image1D m;\n", "round(imageLoad(m, 0)[i % 4] * 127.0)")
            .texture(image, Access::read, "m", std::vector<std::int8_t>{-128, -64, 0, 45}, DType::i8, {1, 4}),
        {-127, -64, 0, 45});
  check(Kernel("layout(rgba32f) readonly uniform image1D m;\n", "round(imageLoad(m, 0)[i % 4] * 32767.0)")
            .texture(image, Access::read, "m", std::vector<std::int16_t>{-32768, -300, 0, 32767}, DType::i16, {1, 4}),
        {-32767, -300, 0, 32767});
  check(Kernel("uniform usampler1D s;\n", "texelFetch(s, int(i % 3), 0).r")
            .texture(sampler, Access::read, "s", std::vector<std::uint16_t>{7, 8, 9}, DType::u16, {3}),
        {7, 8, 9});
  check(Kernel("uniform sampler2DArray s;\n", "texelFetch(s, ivec3(0, 0, i % 3), 0).r")
            .texture(sampler, Access::read, "s", std::vector<float>{5, 6, 7}, DType::f32, {3, 1, 1}),
        {5, 6, 7});
  check(Kernel("layout(r32f) readonly uniform image3D v;\n", "imageLoad(v, ivec3(0, 0, i % 4)).r")
            .texture(image, Access::read, "v", four, DType::f32, {4, 1, 1}),
        {1, 2, 3, 4});
  check(Kernel("layout(r32i) readonly uniform iimageBuffer b;\n", "imageLoad(b, int(i % 3)).r")
            .texture(image, Access::read, "b", std::vector<std::int32_t>{-1, 0, 5}, DType::i32, {3}),
        {-1, 0, 5});
  check(Kernel("uniform samplerBuffer b;\n", "texelFetch(b, int(i % 2)).g")
            .texture(sampler, Access::read, "b", four, DType::f32, {2, 2}),
        {2, 4});
}

TEST_CASE("vulkan: a format of texel buffers is asked for in the way that the kernel uses it",
          "[vulkan][interface][image]") {
  if (!Vulkan::instance().usable()) return;
  support::FaultyVulkan faulty({{"FAULTY_VULKAN_WITHOUT", "storage_texels"}});
  const auto device = faulty.plugin().open("vulkan:0");
  const std::vector<std::uint32_t> texels{7, 8, 9, 10};
  check(Kernel("uniform usamplerBuffer b;\n", "texelFetch(b, int(i % 4)).r")
            .texture(BindingKind::sampler, Access::read, "b", texels, DType::u32, {4})
            .on(*device),
        {7, 8, 9, 10});
  refuse(Kernel("layout(r32ui) readonly uniform uimageBuffer b;\n", "imageLoad(b, int(i % 4)).r")
             .texture(BindingKind::image, Access::read, "b", texels, DType::u32, {4})
             .on(*device),
         "uimageBuffer b: " + device->info().name + " does not support storage texel buffers of VkFormat 98");
}

TEST_CASE("vulkan: an image that the kernel writes comes back", "[vulkan][interface][image]") {
  if (!Vulkan::instance().usable()) return;
  Kernel kernel(
      "layout(rgba8) uniform image2D shown;\nvoid show(ivec2 at) { imageStore(shown, at, vec4(1, 0.2, 0, "
      "at.x)); }\n",
      "i < 2u ? (show(ivec2(i, 0)), 1.0) : 2.0");
  kernel.texture(BindingKind::image, Access::read_write, "shown", std::vector<std::uint8_t>(16, 9), DType::u8,
                 {2, 2, 4});
  const Status status = kernel.run();
  INFO(status.text());
  REQUIRE(status.ok());
  CHECK(values_of_bytes<std::uint8_t>(kernel.tensor(1)) ==
        std::vector<std::uint8_t>{255, 51, 0, 0, 255, 51, 0, 255, 9, 9, 9, 9, 9, 9, 9, 9});
}

TEST_CASE("vulkan: an image of another type than its tensor is refused where it would be written",
          "[vulkan][interface][image]") {
  if (!Vulkan::instance().usable()) return;
  refuse(
      Kernel(
          "layout(rgba32f) writeonly uniform image2D shown;\nvoid show() { imageStore(shown, ivec2(0), vec4(1)); }\n",
          "(show(), 1.0)")
          .texture(BindingKind::image, Access::write, "shown", std::vector<std::uint8_t>(4), DType::u8, {1, 1, 4})
          .shown(),
      "a tensor of uint8 with 4 channels as rgba32f is not supported on Vulkan devices");
  refuse(Kernel("layout(r11f_g11f_b10f) writeonly uniform image2D shown;\n"
                "void show() { imageStore(shown, ivec2(0), vec4(1)); }\n",
                "(show(), 1.0)")
             .texture(BindingKind::image, Access::write, "shown", std::vector<std::uint8_t>(3), DType::u8, {1, 1, 3})
             .shown(),
         "the packed format r11f_g11f_b10f is not supported on Vulkan devices. Declare another, such as rgba16f");
}

TEST_CASE("vulkan: a texture whose texels would be converted before an earlier pass writes them is refused",
          "[vulkan][interface][image]") {
  if (!Vulkan::instance().usable()) return;
  Device& device = *Vulkan::instance().device();
  KernelSource writing, reading;
  writing.dialect = reading.dialect = Dialect::glsl;
  writing.text =
      "#version 450\nlayout(local_size_x = 4) in;\nlayout(std430, binding = 0) writeonly buffer T { float t[]; };\n"
      "void main() { t[gl_LocalInvocationID.x] = 7; }\n";
  reading.text =
      "#version 450\nlayout(local_size_x = 1) in;\nlayout(std430, binding = 0) writeonly buffer Y { float y; };\n"
      "uniform sampler2D s;\nvoid main() { y = texelFetch(s, ivec2(0), 0).g; }\n";
  writing.bindings = {Access::write};
  reading.bindings = {Access::write, Access::read};
  auto writer = device.build(writing), reader = device.build(reading);
  REQUIRE((writer && reader));
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (const std::uint64_t bytes : {16U, 4U}) {
    BufferDesc desc;
    desc.bytes = bytes;
    desc.usage = BufferUsage::readback;
    auto buffer = device.create_buffer(desc);
    REQUIRE(buffer);
    buffers.push_back(std::move(*buffer));
  }
  for (const std::int64_t channels : {4, 3}) {
    UserKernelSpec kernel;
    kernel.dialect = Dialect::glsl;
    kernel.bindings.resize(2);
    kernel.bindings[0].access = Access::write;
    kernel.bindings[0].bytes = 4;
    kernel.bindings[0].name = "Y";
    kernel.bindings[1].kind = BindingKind::sampler;
    kernel.bindings[1].access = Access::read;
    kernel.bindings[1].bytes = static_cast<std::uint64_t>(channels) * 4;
    kernel.bindings[1].dtype = DType::f32;
    kernel.bindings[1].shape = {1, 1, channels};
    kernel.bindings[1].name = "s";
    const auto sources = provide(*(*reader)->interface(reading), kernel);
    INFO((sources ? std::string() : sources.error().text()));
    REQUIRE(sources);
    Buffer* const written[] = {buffers[0].get()};
    Buffer* const read[] = {buffers[1].get(), buffers[0].get()};
    const PassLaunch passes[] = {{writer->get(), written, {1, 1, 1}}, {reader->get(), read, {1, 1, 1}, *sources}};
    const auto value = device.submit({passes});
    INFO(channels << " channels: " << (value ? std::string() : value.error().text()));
    REQUIRE(value.has_value() == (channels == 4));
    if (!value) {
      CHECK(value.error().code == StatusCode::unsupported);
      CHECK_THAT(value.error().message, Catch::Contains("sampler2D s: an earlier pass writes its tensor of float32"));
      continue;
    }
    REQUIRE(device.wait(*value, Deadline::never()));
    std::vector<std::byte> result(4);
    REQUIRE(buffers[1]->read(0, result).ok());
    CHECK(values_of_bytes<float>(result)[0] == 7);
  }
}

TEST_CASE("vulkan: a resource that the job does not provide is named", "[vulkan][interface]") {
  if (!Vulkan::instance().usable()) return;
  refuse(Kernel("uniform float gain;\n", "gain"), "uniform float gain");
  refuse(Kernel("uniform float gain = 3.0;\n", "gain"), "uniform float gain");  // SPIR-V has no initial values
  refuse(Kernel("layout(push_constant) uniform Push { float gain; };\n", "gain"), "uniform float gain");
  refuse(Kernel("layout(std430, binding = 4) buffer A { float a[]; };\n", "a[0]"), "storage block A (binding 4)");
  refuse(Kernel("uniform bool on;\n", "on ? 1 : 0").number("on", 1.0), "expected true or false");
  refuse(Kernel("uniform uint n;\n", "n").integer("n", -1), "out of range");
  refuse(Kernel("uniform sampler2DShadow s;\n", "texture(s, vec3(0.5))"), "sampler2DShadow s");
  refuse(Kernel("struct M { sampler2D t; float k; };\nuniform M m;\n", "texelFetch(m.t, ivec2(0), 0).x * m.k"),
         "uniform m.t: an image or a sampler in a struct");
  refuse(Kernel("", "1.0").number("none", 1.0), "no such uniform");
}

TEST_CASE("vulkan: what a kernel declares and does not use needs no value", "[vulkan][interface]") {
  if (!Vulkan::instance().usable()) return;
  check(Kernel("uniform float unused; uniform float gain;\n", "gain").number("gain", 4), {4});
  check(Kernel("uniform float unused;\n", "3").number("unused", 4), {3});
  check(Kernel("layout(std430, binding = 3) buffer A { float a[]; };\n", "5"), {5});
  check(Kernel("layout(std430, binding = 3) buffer A { float a[]; };\nfloat never() { return a[0]; }\n", "6"), {6});
  check(Kernel("uniform sampler2D s;\n", "7"), {7});
}

}  // namespace kiln::vulkan
