// The types of GLSL by OpenGL's numbers of them. The numbers are those of the tables of the specification.
#include "codec/shader_types.hpp"

#include <catch2/catch.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::opengl {
namespace {

struct KnownType {
  GLenum type;
  std::string_view name;
  ElementType element;
  std::uint32_t columns, rows, bytes_of_element;
};

constexpr KnownType known_types[] = {
    {0x1406, "float", ElementType::f32, 1, 1, 4},     {0x8B50, "vec2", ElementType::f32, 1, 2, 4},
    {0x8B51, "vec3", ElementType::f32, 1, 3, 4},      {0x8B52, "vec4", ElementType::f32, 1, 4, 4},
    {0x140A, "double", ElementType::f64, 1, 1, 8},    {0x8FFC, "dvec2", ElementType::f64, 1, 2, 8},
    {0x8FFD, "dvec3", ElementType::f64, 1, 3, 8},     {0x8FFE, "dvec4", ElementType::f64, 1, 4, 8},
    {0x1404, "int", ElementType::i32, 1, 1, 4},       {0x8B53, "ivec2", ElementType::i32, 1, 2, 4},
    {0x8B54, "ivec3", ElementType::i32, 1, 3, 4},     {0x8B55, "ivec4", ElementType::i32, 1, 4, 4},
    {0x1405, "uint", ElementType::u32, 1, 1, 4},      {0x8DC6, "uvec2", ElementType::u32, 1, 2, 4},
    {0x8DC7, "uvec3", ElementType::u32, 1, 3, 4},     {0x8DC8, "uvec4", ElementType::u32, 1, 4, 4},
    {0x8B56, "bool", ElementType::boolean, 1, 1, 4},  {0x8B57, "bvec2", ElementType::boolean, 1, 2, 4},
    {0x8B58, "bvec3", ElementType::boolean, 1, 3, 4}, {0x8B59, "bvec4", ElementType::boolean, 1, 4, 4},
    {0x8B5A, "mat2", ElementType::f32, 2, 2, 4},      {0x8B5B, "mat3", ElementType::f32, 3, 3, 4},
    {0x8B5C, "mat4", ElementType::f32, 4, 4, 4},      {0x8B65, "mat2x3", ElementType::f32, 2, 3, 4},
    {0x8B66, "mat2x4", ElementType::f32, 2, 4, 4},    {0x8B67, "mat3x2", ElementType::f32, 3, 2, 4},
    {0x8B68, "mat3x4", ElementType::f32, 3, 4, 4},    {0x8B69, "mat4x2", ElementType::f32, 4, 2, 4},
    {0x8B6A, "mat4x3", ElementType::f32, 4, 3, 4},    {0x8F46, "dmat2", ElementType::f64, 2, 2, 8},
    {0x8F47, "dmat3", ElementType::f64, 3, 3, 8},     {0x8F48, "dmat4", ElementType::f64, 4, 4, 8},
    {0x8F49, "dmat2x3", ElementType::f64, 2, 3, 8},   {0x8F4A, "dmat2x4", ElementType::f64, 2, 4, 8},
    {0x8F4B, "dmat3x2", ElementType::f64, 3, 2, 8},   {0x8F4C, "dmat3x4", ElementType::f64, 3, 4, 8},
    {0x8F4D, "dmat4x2", ElementType::f64, 4, 2, 8},   {0x8F4E, "dmat4x3", ElementType::f64, 4, 3, 8},
    {0x140E, "int64_t", ElementType::i64, 1, 1, 8},   {0x8FE9, "i64vec2", ElementType::i64, 1, 2, 8},
    {0x8FEA, "i64vec3", ElementType::i64, 1, 3, 8},   {0x8FEB, "i64vec4", ElementType::i64, 1, 4, 8},
    {0x140F, "uint64_t", ElementType::u64, 1, 1, 8},  {0x8FF5, "u64vec2", ElementType::u64, 1, 2, 8},
    {0x8FF6, "u64vec3", ElementType::u64, 1, 3, 8},   {0x8FF7, "u64vec4", ElementType::u64, 1, 4, 8}};

constexpr GLenum target_1d = 0x0DE0, target_2d = 0x0DE1, target_3d = 0x806F, target_rectangle = 0x84F5,
                 target_cube = 0x8513, target_1d_array = 0x8C18, target_2d_array = 0x8C1A, target_buffer = 0x8C2A,
                 target_cube_array = 0x9009, no_target = 0;

struct KnownTexture {
  GLenum of_float, of_int, of_uint;  // 0: there is none
  std::string_view name;
  GLenum target;
  std::uint32_t dimensions;
  bool layered, cube, buffer;
};

constexpr KnownTexture known_textures[] = {
    {0x904C, 0x9057, 0x9062, "image1D", target_1d, 1, false, false, false},
    {0x904D, 0x9058, 0x9063, "image2D", target_2d, 2, false, false, false},
    {0x904E, 0x9059, 0x9064, "image3D", target_3d, 3, false, false, false},
    {0x904F, 0x905A, 0x9065, "image2DRect", target_rectangle, 2, false, false, false},
    {0x9050, 0x905B, 0x9066, "imageCube", target_cube, 2, false, true, false},
    {0x9051, 0x905C, 0x9067, "imageBuffer", target_buffer, 1, false, false, true},
    {0x9052, 0x905D, 0x9068, "image1DArray", target_1d_array, 1, true, false, false},
    {0x9053, 0x905E, 0x9069, "image2DArray", target_2d_array, 2, true, false, false},
    {0x9054, 0x905F, 0x906A, "imageCubeArray", target_cube_array, 2, true, true, false},
    {0x9055, 0x9060, 0x906B, "image2DMS", no_target, 2, false, false, false},
    {0x9056, 0x9061, 0x906C, "image2DMSArray", no_target, 2, true, false, false},
    {0x8B5D, 0x8DC9, 0x8DD1, "sampler1D", target_1d, 1, false, false, false},
    {0x8B5E, 0x8DCA, 0x8DD2, "sampler2D", target_2d, 2, false, false, false},
    {0x8B5F, 0x8DCB, 0x8DD3, "sampler3D", target_3d, 3, false, false, false},
    {0x8B63, 0x8DCD, 0x8DD5, "sampler2DRect", target_rectangle, 2, false, false, false},
    {0x8B60, 0x8DCC, 0x8DD4, "samplerCube", target_cube, 2, false, true, false},
    {0x8DC2, 0x8DD0, 0x8DD8, "samplerBuffer", target_buffer, 1, false, false, true},
    {0x8DC0, 0x8DCE, 0x8DD6, "sampler1DArray", target_1d_array, 1, true, false, false},
    {0x8DC1, 0x8DCF, 0x8DD7, "sampler2DArray", target_2d_array, 2, true, false, false},
    {0x900C, 0x900E, 0x900F, "samplerCubeArray", target_cube_array, 2, true, true, false},
    {0x9108, 0x9109, 0x910A, "sampler2DMS", no_target, 2, false, false, false},
    {0x910B, 0x910C, 0x910D, "sampler2DMSArray", no_target, 2, true, false, false},
    {0x8B61, 0, 0, "sampler1DShadow", no_target, 1, false, false, false},
    {0x8B62, 0, 0, "sampler2DShadow", no_target, 2, false, false, false},
    {0x8B64, 0, 0, "sampler2DRectShadow", no_target, 2, false, false, false},
    {0x8DC5, 0, 0, "samplerCubeShadow", no_target, 2, false, true, false},
    {0x8DC3, 0, 0, "sampler1DArrayShadow", no_target, 1, true, false, false},
    {0x8DC4, 0, 0, "sampler2DArrayShadow", no_target, 2, true, false, false},
    {0x900D, 0, 0, "samplerCubeArrayShadow", no_target, 2, true, true, false}};

}  // namespace

TEST_CASE("opengl: shader types: numbers, vectors and matrices by their OpenGL numbers", "[opengl][codec]") {
  for (const KnownType& known : known_types) {
    INFO(std::string(known.name));
    const TypeFacts* const facts = facts_of(known.type);
    REQUIRE(facts != nullptr);
    CHECK(std::string(facts->name) == std::string(known.name));
    CHECK(facts->type == known.type);
    CHECK(facts->element == known.element);
    CHECK(facts->columns == known.columns);
    CHECK(facts->rows == known.rows);
    CHECK(components(*facts) == known.columns * known.rows);
    CHECK(element_of(known.name) == known.element);
    CHECK(bytes_of(known.element) == known.bytes_of_element);
    CHECK(texture_facts_of(known.type) == nullptr);
  }
  CHECK(facts_of(0) == nullptr);
  CHECK(element_of(std::string_view("mat5")) == ElementType::unknown);
}

TEST_CASE("opengl: shader types: images and samplers by their OpenGL numbers", "[opengl][codec]") {
  for (const KnownTexture& known : known_textures) {
    for (const GLenum type : {known.of_float, known.of_int, known.of_uint}) {
      if (type == 0) continue;
      INFO(std::string(known.name) << " " << type);
      const TextureFacts* const facts = texture_facts_of(type);
      REQUIRE(facts != nullptr);
      CHECK(std::string(facts->name) == std::string(known.name));
      CHECK(facts->first == known.of_float);
      CHECK(facts->of_int == known.of_int);
      CHECK(facts->of_uint == known.of_uint);
      CHECK(facts->target == known.target);
      CHECK(facts->shape.dimensions == known.dimensions);
      CHECK(facts->shape.layered == known.layered);
      CHECK(facts->shape.cube == known.cube);
      CHECK(facts->shape.buffer == known.buffer);
      CHECK(facts_of(type) == nullptr);
    }
  }
  CHECK(texture_facts_of(0) == nullptr);  // GL_NONE, which a shadow sampler has in the place of its other types
}

TEST_CASE("opengl: shader types: one OpenGL type for several declarations", "[opengl][codec]") {
  const auto of = [](const std::vector<std::string>& types) { return element_of(types); };
  CHECK(of({}) == ElementType::unknown);
  CHECK(of({"vec3"}) == ElementType::f32);
  CHECK(of({"mat2", "float"}) == ElementType::f32);
  CHECK(of({"double", "dvec2"}) == ElementType::f64);
  CHECK(of({"int", "uint", "bool"}) == ElementType::i32);  // their bits lie alike
  CHECK(of({"bvec2", "ivec2"}) == ElementType::boolean);
  CHECK(of({"uint64_t", "i64vec2"}) == ElementType::u64);
  CHECK(of({"float", "int"}) == ElementType::unknown);
  CHECK(of({"float", "double"}) == ElementType::unknown);
  CHECK(of({"int", "int64_t"}) == ElementType::unknown);
  CHECK(of({"float", "float", "Light"}) == ElementType::unknown);
}

}  // namespace kiln::opengl
