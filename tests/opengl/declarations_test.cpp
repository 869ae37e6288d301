// What a text declares, entry by entry: written by hand from the grammar of GLSL.
#include "codec/declarations.hpp"

#include <catch2/catch.hpp>

#include "codec/preprocessor.hpp"

namespace kiln::opengl::glsl {
namespace {

using Names = std::vector<std::string>;
using Lengths = std::vector<std::uint32_t>;

std::vector<Declaration> declared(const std::string& text) { return declarations(preprocessed(text, {}).tokens); }

Declaration only(const std::string& text) {
  const auto found = declared(text);
  REQUIRE(found.size() == 1);
  return found.front();
}

Names names_of(const std::vector<Declaration>& found) {
  Names names;
  for (const Declaration& one : found) names.push_back(one.type + " " + one.name);
  return names;
}

}  // namespace

TEST_CASE("opengl: glsl: uniforms with their types, lengths and initialisers", "[opengl][glsl]") {
  const auto found = declared(
      "#version 430\n"
      "layout(local_size_x = 4) in;\n"
      "precision highp float;\n"
      "const int N = 2, M = 3;\n"
      "layout(location = 3) uniform float a = 1.5, b, c[N], d = 2;\n"
      "uniform vec2 pair[2] = { vec2(1), vec2(2) };\n"
      "uniform int table[N * M][2];\n"
      "uniform float[2] grid[3];\n"
      "float helper(float v) { uniform_like = 3; return v; }\n"
      "int global = 3;\n"
      "uniform uint last;\n"
      "void main() { if (a > 1) { b; } }\n");
  CHECK(names_of(found) ==
        Names{"float a", "float b", "float c", "float d", "vec2 pair", "int table", "float grid", "uint last"});
  std::vector<bool> defaults;
  for (const Declaration& one : found) {
    defaults.push_back(one.has_default);
    CHECK(one.kind == ResourceKind::uniform);
    CHECK(one.number == 0u);
    CHECK(one.format == ImageFormat::declared);
  }
  CHECK(defaults == std::vector<bool>{true, false, false, true, true, false, false, false});
  CHECK(found[0].lengths.empty());
  CHECK(found[0].resources == Names{"a"});
  CHECK(found[2].lengths == Lengths{2});
  CHECK(found[2].resources == Names{"c"});  // OpenGL has one entry for the innermost array
  CHECK(found[5].lengths == Lengths{6, 2});
  CHECK(found[5].resources == Names{"table[0]", "table[1]", "table[2]", "table[3]", "table[4]", "table[5]"});
  CHECK(found[6].lengths == Lengths{3, 2});
  CHECK(found[6].resources == Names{"grid[0]", "grid[1]", "grid[2]"});
}

TEST_CASE("opengl: glsl: each member of a uniform of a struct type", "[opengl][glsl]") {
  const auto found = declared(
      "struct Spot { vec3 at; float power[2]; };\n"
      "struct Scene { Spot spots[2]; int count; };\n"
      "uniform Scene scene;\n"
      "uniform struct { float x, y; } pair[2], one;\n");
  CHECK(names_of(found) == Names{"vec3 scene.spots.at", "float scene.spots.power", "int scene.count", "float pair.x",
                                 "float pair.y", "float one.x", "float one.y"});
  CHECK(found[0].resources == Names{"scene.spots[0].at", "scene.spots[1].at"});
  CHECK(found[1].resources == Names{"scene.spots[0].power", "scene.spots[1].power"});
  CHECK(found[1].lengths == Lengths{2});
  CHECK(found[2].resources == Names{"scene.count"});
  CHECK(found[4].resources == Names{"pair[0].y", "pair[1].y"});
  CHECK(found[6].resources == Names{"one.y"});
}

TEST_CASE("opengl: glsl: blocks with their members, bindings and instances", "[opengl][glsl]") {
  const auto found = declared(
      "const int SLOT = 4;\n"
      "struct Pair { float a; int b; };\n"
      "layout(std430, binding = 2) readonly buffer In { float x[]; };\n"
      "layout(binding = SLOT + 1) buffer Out { Pair pairs[3]; uint rest, more; } result[2][3];\n"
      "layout(std140, binding = unknown) uniform Params { mat2 turn; float unread; } params;\n"
      "buffer Alone { int alone; };\n"
      "void main() { result[0][1].rest = uint(x[0]) + params.turn; }\n");
  REQUIRE(found.size() == 4);
  CHECK(found[0].kind == ResourceKind::storage_block);
  CHECK(found[0].name == "In");
  CHECK(found[0].number == 2u);
  CHECK(found[0].access == Access::read);
  CHECK(found[0].members == Names{"float"});
  CHECK(found[0].mentioned);
  CHECK(found[0].unread.empty());
  CHECK(found[0].resources == Names{"In"});
  CHECK(found[1].name == "Out");
  CHECK(found[1].number == 5u);
  CHECK(found[1].access == Access::read_write);
  CHECK(found[1].members == Names{"float", "int", "uint", "uint"});
  CHECK(found[1].unread == Names{"pairs", "more"});
  CHECK(found[1].lengths == Lengths{2, 3});
  CHECK(found[1].resources == Names{"Out[0][0]", "Out[0][1]", "Out[0][2]", "Out[1][0]", "Out[1][1]", "Out[1][2]"});
  CHECK(found[2].kind == ResourceKind::uniform_block);
  CHECK_FALSE(found[2].number);  // not known here
  CHECK(found[2].mentioned);
  CHECK(found[2].unread == Names{"unread"});
  CHECK(found[3].number == 0u);
  CHECK_FALSE(found[3].mentioned);
}

TEST_CASE("opengl: glsl: access of a block, or of all its members", "[opengl][glsl]") {
  const auto access = [](const std::string& text) { return only(text).access; };
  CHECK(access("buffer B { float a; };") == Access::read_write);
  CHECK(access("readonly buffer B { float a; };") == Access::read);
  CHECK(access("writeonly buffer B { float a; };") == Access::write);
  CHECK(access("readonly writeonly buffer B { float a; };") == Access::read_write);  // only its length is asked for
  CHECK(access("buffer B { readonly float a; readonly int b; };") == Access::read);
  CHECK(access("buffer B { writeonly float a; writeonly int b; };") == Access::write);
  CHECK(access("buffer B { readonly float a; int b; };") == Access::read_write);
  CHECK(access("buffer B { readonly float a; writeonly int b; };") == Access::read_write);
  CHECK(access("readonly buffer B { writeonly float a; };") == Access::read);
}

TEST_CASE("opengl: glsl: images and samplers with binding, format and access", "[opengl][glsl]") {
  const Declaration image = only("layout(binding = 3, rgba8) writeonly uniform image2D shown;");
  CHECK(image.kind == ResourceKind::uniform);
  CHECK(image.type == "image2D");
  CHECK(image.number == 3u);
  CHECK(image.format == ImageFormat::rgba8);
  CHECK(image.access == Access::write);
  CHECK(only("layout(r32ui) layout(binding = 1) uniform uimage1D a;").number == 1u);
  CHECK(only("layout(r32ui) layout(binding = 1) uniform uimage1D a;").format == ImageFormat::r32ui);
  const auto several = declared("layout(binding = 1) uniform sampler2D a, b[2];");
  REQUIRE(several.size() == 2);
  CHECK(several[1].type == "sampler2D");
  CHECK(several[1].number == 1u);
  CHECK(several[1].access == Access::read_write);
  CHECK(declared("layout(std140) uniform;\nlayout(r32f) uniform;").empty());
}

TEST_CASE("opengl: glsl: lengths that are constants, and those that are not known", "[opengl][glsl]") {
  const auto lengths = [](const std::string& text) { return declared(text).back().lengths; };
  CHECK(lengths("const int A = 2; const int B = A * A + 1; uniform int x[B];") == Lengths{5});
  CHECK(lengths("const int A = 1 + 1; uniform int x[A * 3];") == Lengths{6});  // the sum in brackets
  CHECK(lengths("const int A = 2, B = A; uniform int x[B];") == Lengths{2});
  CHECK(lengths("uniform int x[size()];") == Lengths{0});
  CHECK(lengths("uniform int x[-1];") == Lengths{0});
  CHECK(lengths("uniform int x[];") == Lengths{0});
  CHECK(lengths("uniform int x[4294967295];") == Lengths{4294967295u});
  CHECK(lengths("uniform int x[4294967296];") == Lengths{0});
  CHECK(only("uniform int x[4096][2];").resources.size() == 4096);
  CHECK(only("uniform int x[4097][2];").resources.empty());  // too many to list
  CHECK(only("uniform int x[64][64][2];").resources.size() == 4096);
  CHECK(only("uniform int x[64][65][2];").resources.empty());
}

}  // namespace kiln::opengl::glsl
