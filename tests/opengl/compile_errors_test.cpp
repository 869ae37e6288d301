#include "codec/source_text.hpp"

#include <catch2/catch.hpp>

#include <vector>

#include "opengl/support/kernels.hpp"

namespace kiln::opengl {
namespace {

using Catch::Matchers::Contains;

const std::vector<std::string> files{"blur.comp", "lib/noise.glsl"};

std::string advice(const std::string& text) { return vulkan_advice(text, files); }

}  // namespace

TEST_CASE("opengl: compile errors: source strings get the names of their files", "[opengl][errors]") {
  CHECK(with_file_names("0:9(12): error: `x' undeclared\n1:3(1): preprocessor error: #error no\n", files) ==
        "blur.comp:9:12: error: `x' undeclared\nlib/noise.glsl:3:1: preprocessor error: #error no\n");
  CHECK(with_file_names("1(7) : error C1008: undefined variable \"x\"", files) ==
        "lib/noise.glsl:7: error C1008: undefined variable \"x\"");
  CHECK(with_file_names("ERROR: 0:12: 'x' : undeclared identifier\nWARNING: 1:2: y\n", files) ==
        "blur.comp:12: ERROR: 'x' : undeclared identifier\nlib/noise.glsl:2: WARNING: y\n");
  CHECK(with_file_names("0(7): x\n\n1:2: y\nend", files) == "blur.comp:7: x\n\nlib/noise.glsl:2: y\nend");
  CHECK(with_file_names("WARNING: 1:2(3): y", files) == "lib/noise.glsl:2:3: WARNING: y");
  CHECK(with_file_names("ERROR: WARNING: 1:2: y", files) == "ERROR: WARNING: 1:2: y");
  for (const char* other : {"0:1 : x", "0:1(2) x", "0(1): x", "0[1]: x", "ERROR: x", " 0:1: x"}) {
    INFO(other);
    const std::string named = with_file_names(other, files);
    CHECK(named == (std::string(other) == "0:1 : x" || std::string(other) == "0(1): x" ? "blur.comp:1: x" : other));
  }
  for (const char* other : {"2:3(4): error: no such file", "error: linking failed", "0:", "0:x", "0(1", "0:1(2", "",
                            "\n", "99999999999:1(1): error: x"}) {
    CHECK(with_file_names(other, files) == other);
  }
  CHECK(with_file_names("0:9(12): error: x", {}) == "0:9(12): error: x");
}

TEST_CASE("opengl: compile errors: all that Vulkan's GLSL has is listed at once", "[opengl][errors]") {
  const std::string all = advice(
      "#version 450\n"
      "#extension GL_EXT_scalar_block_layout : require\n"
      "layout(local_size_x_id = 3) in;\n"
      "layout(std430, set = 0, binding = 0) buffer A { float a[]; };\n"
      "layout(set = 1, binding = 0) buffer B { float b[]; };\n"
      "layout(push_constant) uniform Push { float gain; } push;\n"
      "layout(constant_id = 0) const int FIRST = 1;\n"
      "#line 8 1\n"
      "layout(set = 0, binding = 2) uniform texture2D image;\n"
      "layout(set = 0, binding = 3) uniform sampler how;\n");
  CHECK_THAT(all, Catch::StartsWith("blur.comp is written for Vulkan"));
  CHECK_THAT(all, Contains("blur.comp:2: #extension GL_EXT_scalar_block_layout"));
  CHECK_THAT(all, Contains("blur.comp:3: local_size_x_id"));
  CHECK_THAT(all, Contains("blur.comp:4, blur.comp:5, lib/noise.glsl:8, lib/noise.glsl:9: set: "));
  CHECK_THAT(all, Contains("blur.comp:6: push_constant: ") && Contains("uniforms"));
  CHECK_THAT(all, Contains("blur.comp:7: constant_id of FIRST: ") && Contains("constants"));
  CHECK_THAT(all, Contains("lib/noise.glsl:8: texture2D: ") && Contains("lib/noise.glsl:9: sampler: "));
}

TEST_CASE("opengl: compile errors: each construct of Vulkan's GLSL has its advice, with every place once",
          "[opengl][errors]") {
  const std::string no_sets = "remove it: OpenGL has no descriptor sets, and each block needs a separate binding";
  const std::string size = "write the size, or the name of one of the job's constants, without \"_id\"";
  const std::string block = "bind the memory as a buffer block";
  const std::string sampler = "use a combined sampler such as sampler2D, or a buffer";
  const std::string none = "remove it: OpenGL has no such extension";
  struct Construct {
    std::string text, what, instead;
  };
  std::vector<Construct> constructs = {
      {"layout(set = 0) buffer A { float a; };", "set", no_sets},
      {"layout(std430, push_constant) uniform P { float p; };", "push_constant",
       "declare its members as plain uniforms, and give their values in the job's uniforms"},
      {"layout(constant_id = 3) const int SIZE = 4, OTHER = 2;", "constant_id of SIZE",
       "remove the declaration, and give its value in the job's constants"},
      {"layout(constant_id = 3) const int BARE;", "constant_id of BARE",
       "remove the declaration, and give its value in the job's constants"},
      {"layout(constant_id = 3)", "constant_id", "remove the declaration, and give its value in the job's constants"},
      {"layout(local_size_x_id = 0) in;", "local_size_x_id", size},
      {"layout(local_size_y_id = 0) in;", "local_size_y_id", size},
      {"layout(local_size_z_id = 0) in;", "local_size_z_id", size},
      {"layout(input_attachment_index = 0) uniform X x;", "input_attachment_index",
       "compute shaders have no input attachments"},
      {"layout(scalar) buffer A { float a; };", "scalar", "write std430, and pad the data as it says"},
      {"layout(buffer_reference) buffer A { float a; };", "buffer_reference", block},
      {"layout(buffer_reference_align = 8) buffer A { float a; };", "buffer_reference_align", block},
      {"vec4 f() { return subpassLoad(x); }", "subpassLoad", sampler},
      {"#extension GL_EXT_scalar_block_layout : enable", "#extension GL_EXT_scalar_block_layout", none},
      {"#extension GL_EXT_shader_explicit_arithmetic_types_int8 : enable",
       "#extension GL_EXT_shader_explicit_arithmetic_types_int8", none},
      {"#extension GL_KHR_shader_subgroup_arithmetic : require", "#extension GL_KHR_shader_subgroup_arithmetic",
       "this driver does not support it: use a vulkan device"}};
  for (const char* type : {"sampler", "samplerShadow", "texture1D", "utexture2D", "itexture3D", "textureCubeArray",
                           "textureBuffer", "texture2DMSArray", "subpassInput", "usubpassInputMS"}) {
    constructs.push_back({std::string("uniform ") + type + " x;", type, sampler});
  }
  const std::string head = "blur.comp is written for Vulkan, expected GLSL for OpenGL. Change:\n";
  for (const Construct& one : constructs) {
    INFO(one.text);
    CHECK(advice("\n" + one.text + "\n") == head + "  blur.comp:2: " + one.what + ": " + one.instead + "\n");
  }
  CHECK(advice("layout(set = 0, set = 1) buffer A { float a; };\n#line 9 5\nlayout(set = 1) buffer B { float b; };") ==
        head + "  blur.comp:1, line 9: set: " + no_sets + "\n");
  for (const char* other :
       {"uniform sampler2D x;", "texture2D(x, y);", "float texture = 1.0;", "uniform mytexture2D x;",
        "layout(std430, binding = 0) buffer A { float scalar; };", "int layout;", "layout() in;",
        "#extension all : disable", "#extension GL_EXT_texture_buffer : require", "sampler"}) {
    INFO(other);
    CHECK(advice(other).empty());
  }
}

TEST_CASE("opengl: compile errors: what OpenGL has too is not taken for Vulkan's", "[opengl][errors]") {
  CHECK(advice("#version 430\nlayout(std430, binding = 0) buffer A { float set[]; };\nvoid main() { set[0] = 1.0; }\n")
            .empty());
  CHECK(advice("// layout(set = 0)\n#ifdef VULKAN\nlayout(set = 0) uniform texture2D t;\n#endif\n").empty());
  CHECK(advice("vec4 texture2D; float sampler = 1.0; layout(location = 0) uniform sampler2D s;\n").empty());
  CHECK(advice("#extension GL_EXT_scalar_block_layout : disable\n#extension GL_ARB_gpu_shader5 : enable\n").empty());
  CHECK_FALSE(advice("#define SET(s, b) layout(set = s, binding = b)\nSET(0, 1) buffer A { float a[]; };\n").empty());
  CHECK_THAT(vulkan_advice("layout(push_constant) uniform P { float x; };", {}),
             Contains("the text is written") && Contains("line 1: "));
}

TEST_CASE("opengl: compile errors: the driver's log names the file, also behind constants and #line",
          "[opengl][errors]") {
  support::OpenGl gl;
  if (!gl.usable()) return;
  KernelSource source = support::saxpy();
  source.files = files;
  source.constants = {{"A", "2.5"}, {"B", "1"}};
  const auto error_with = [&](const std::string& text) {
    source.text = "#version 430\nlayout(local_size_x = 1) in;\n" + text;
    const auto program = gl.device().build(source);
    REQUIRE_FALSE(program.has_value());
    return program.error().message;
  };
  CHECK_THAT(error_with("#line 1 1\nfloat f() { return nothing; }\n#line 4 0\nvoid main() { missing = 1; }\n"),
             Contains("lib/noise.glsl:1:") && Contains("blur.comp:4:"));
  CHECK_THAT(error_with("layout(set = 0) buffer X { float x[]; };\nvoid main() { x[0] = 1.0; }\n"),
             Contains("blur.comp is written for Vulkan") && Contains("blur.comp:3:"));
  source.text = "#version 430\nlayout(local_size_x = 1) in;\nvoid f();\nvoid main() { f(); }\n";
  const auto unlinked = gl.device().build(source);
  REQUIRE_FALSE(unlinked.has_value());
  CHECK_THAT(unlinked.error().message, Contains("blur.comp"));
}

}  // namespace kiln::opengl
