#include "codec/shader_types.hpp"

#include <algorithm>
#include <iterator>

namespace kiln::opengl {
namespace {

constexpr TypeFacts numeric_types[] = {
    {GL_FLOAT, "float", ElementType::f32, 1, 1},
    {GL_FLOAT_VEC2, "vec2", ElementType::f32, 1, 2},
    {GL_FLOAT_VEC3, "vec3", ElementType::f32, 1, 3},
    {GL_FLOAT_VEC4, "vec4", ElementType::f32, 1, 4},
    {GL_DOUBLE, "double", ElementType::f64, 1, 1},
    {GL_DOUBLE_VEC2, "dvec2", ElementType::f64, 1, 2},
    {GL_DOUBLE_VEC3, "dvec3", ElementType::f64, 1, 3},
    {GL_DOUBLE_VEC4, "dvec4", ElementType::f64, 1, 4},
    {GL_INT, "int", ElementType::i32, 1, 1},
    {GL_INT_VEC2, "ivec2", ElementType::i32, 1, 2},
    {GL_INT_VEC3, "ivec3", ElementType::i32, 1, 3},
    {GL_INT_VEC4, "ivec4", ElementType::i32, 1, 4},
    {GL_UNSIGNED_INT, "uint", ElementType::u32, 1, 1},
    {GL_UNSIGNED_INT_VEC2, "uvec2", ElementType::u32, 1, 2},
    {GL_UNSIGNED_INT_VEC3, "uvec3", ElementType::u32, 1, 3},
    {GL_UNSIGNED_INT_VEC4, "uvec4", ElementType::u32, 1, 4},
    {GL_BOOL, "bool", ElementType::boolean, 1, 1},
    {GL_BOOL_VEC2, "bvec2", ElementType::boolean, 1, 2},
    {GL_BOOL_VEC3, "bvec3", ElementType::boolean, 1, 3},
    {GL_BOOL_VEC4, "bvec4", ElementType::boolean, 1, 4},
    {GL_FLOAT_MAT2, "mat2", ElementType::f32, 2, 2},
    {GL_FLOAT_MAT3, "mat3", ElementType::f32, 3, 3},
    {GL_FLOAT_MAT4, "mat4", ElementType::f32, 4, 4},
    {GL_FLOAT_MAT2x3, "mat2x3", ElementType::f32, 2, 3},
    {GL_FLOAT_MAT2x4, "mat2x4", ElementType::f32, 2, 4},
    {GL_FLOAT_MAT3x2, "mat3x2", ElementType::f32, 3, 2},
    {GL_FLOAT_MAT3x4, "mat3x4", ElementType::f32, 3, 4},
    {GL_FLOAT_MAT4x2, "mat4x2", ElementType::f32, 4, 2},
    {GL_FLOAT_MAT4x3, "mat4x3", ElementType::f32, 4, 3},
    {GL_DOUBLE_MAT2, "dmat2", ElementType::f64, 2, 2},
    {GL_DOUBLE_MAT3, "dmat3", ElementType::f64, 3, 3},
    {GL_DOUBLE_MAT4, "dmat4", ElementType::f64, 4, 4},
    {GL_DOUBLE_MAT2x3, "dmat2x3", ElementType::f64, 2, 3},
    {GL_DOUBLE_MAT2x4, "dmat2x4", ElementType::f64, 2, 4},
    {GL_DOUBLE_MAT3x2, "dmat3x2", ElementType::f64, 3, 2},
    {GL_DOUBLE_MAT3x4, "dmat3x4", ElementType::f64, 3, 4},
    {GL_DOUBLE_MAT4x2, "dmat4x2", ElementType::f64, 4, 2},
    {GL_DOUBLE_MAT4x3, "dmat4x3", ElementType::f64, 4, 3},
    // GL_ARB_gpu_shader_int64, whose names the loader does not define.
    {0x140E, "int64_t", ElementType::i64, 1, 1},
    {0x8FE9, "i64vec2", ElementType::i64, 1, 2},
    {0x8FEA, "i64vec3", ElementType::i64, 1, 3},
    {0x8FEB, "i64vec4", ElementType::i64, 1, 4},
    {0x140F, "uint64_t", ElementType::u64, 1, 1},
    {0x8FF5, "u64vec2", ElementType::u64, 1, 2},
    {0x8FF6, "u64vec3", ElementType::u64, 1, 3},
    {0x8FF7, "u64vec4", ElementType::u64, 1, 4},
};

constexpr TextureFacts texture_types[] = {
    {GL_IMAGE_1D, GL_INT_IMAGE_1D, GL_UNSIGNED_INT_IMAGE_1D, "image1D", GL_TEXTURE_1D, {1}},
    {GL_IMAGE_2D, GL_INT_IMAGE_2D, GL_UNSIGNED_INT_IMAGE_2D, "image2D", GL_TEXTURE_2D, {2}},
    {GL_IMAGE_3D, GL_INT_IMAGE_3D, GL_UNSIGNED_INT_IMAGE_3D, "image3D", GL_TEXTURE_3D, {3}},
    {GL_IMAGE_2D_RECT, GL_INT_IMAGE_2D_RECT, GL_UNSIGNED_INT_IMAGE_2D_RECT, "image2DRect", GL_TEXTURE_RECTANGLE, {2}},
    {GL_IMAGE_CUBE, GL_INT_IMAGE_CUBE, GL_UNSIGNED_INT_IMAGE_CUBE, "imageCube", GL_TEXTURE_CUBE_MAP, {2, false, true}},
    {GL_IMAGE_BUFFER,
     GL_INT_IMAGE_BUFFER,
     GL_UNSIGNED_INT_IMAGE_BUFFER,
     "imageBuffer",
     GL_TEXTURE_BUFFER,
     {1, false, false, true}},
    {GL_IMAGE_1D_ARRAY,
     GL_INT_IMAGE_1D_ARRAY,
     GL_UNSIGNED_INT_IMAGE_1D_ARRAY,
     "image1DArray",
     GL_TEXTURE_1D_ARRAY,
     {1, true}},
    {GL_IMAGE_2D_ARRAY,
     GL_INT_IMAGE_2D_ARRAY,
     GL_UNSIGNED_INT_IMAGE_2D_ARRAY,
     "image2DArray",
     GL_TEXTURE_2D_ARRAY,
     {2, true}},
    {GL_IMAGE_CUBE_MAP_ARRAY,
     GL_INT_IMAGE_CUBE_MAP_ARRAY,
     GL_UNSIGNED_INT_IMAGE_CUBE_MAP_ARRAY,
     "imageCubeArray",
     GL_TEXTURE_CUBE_MAP_ARRAY,
     {2, true, true}},
    {GL_IMAGE_2D_MULTISAMPLE,
     GL_INT_IMAGE_2D_MULTISAMPLE,
     GL_UNSIGNED_INT_IMAGE_2D_MULTISAMPLE,
     "image2DMS",
     GL_NONE,
     {2}},
    {GL_IMAGE_2D_MULTISAMPLE_ARRAY,
     GL_INT_IMAGE_2D_MULTISAMPLE_ARRAY,
     GL_UNSIGNED_INT_IMAGE_2D_MULTISAMPLE_ARRAY,
     "image2DMSArray",
     GL_NONE,
     {2, true}},
    {GL_SAMPLER_1D, GL_INT_SAMPLER_1D, GL_UNSIGNED_INT_SAMPLER_1D, "sampler1D", GL_TEXTURE_1D, {1}},
    {GL_SAMPLER_2D, GL_INT_SAMPLER_2D, GL_UNSIGNED_INT_SAMPLER_2D, "sampler2D", GL_TEXTURE_2D, {2}},
    {GL_SAMPLER_3D, GL_INT_SAMPLER_3D, GL_UNSIGNED_INT_SAMPLER_3D, "sampler3D", GL_TEXTURE_3D, {3}},
    {GL_SAMPLER_2D_RECT,
     GL_INT_SAMPLER_2D_RECT,
     GL_UNSIGNED_INT_SAMPLER_2D_RECT,
     "sampler2DRect",
     GL_TEXTURE_RECTANGLE,
     {2}},
    {GL_SAMPLER_CUBE,
     GL_INT_SAMPLER_CUBE,
     GL_UNSIGNED_INT_SAMPLER_CUBE,
     "samplerCube",
     GL_TEXTURE_CUBE_MAP,
     {2, false, true}},
    {GL_SAMPLER_BUFFER,
     GL_INT_SAMPLER_BUFFER,
     GL_UNSIGNED_INT_SAMPLER_BUFFER,
     "samplerBuffer",
     GL_TEXTURE_BUFFER,
     {1, false, false, true}},
    {GL_SAMPLER_1D_ARRAY,
     GL_INT_SAMPLER_1D_ARRAY,
     GL_UNSIGNED_INT_SAMPLER_1D_ARRAY,
     "sampler1DArray",
     GL_TEXTURE_1D_ARRAY,
     {1, true}},
    {GL_SAMPLER_2D_ARRAY,
     GL_INT_SAMPLER_2D_ARRAY,
     GL_UNSIGNED_INT_SAMPLER_2D_ARRAY,
     "sampler2DArray",
     GL_TEXTURE_2D_ARRAY,
     {2, true}},
    {GL_SAMPLER_CUBE_MAP_ARRAY,
     GL_INT_SAMPLER_CUBE_MAP_ARRAY,
     GL_UNSIGNED_INT_SAMPLER_CUBE_MAP_ARRAY,
     "samplerCubeArray",
     GL_TEXTURE_CUBE_MAP_ARRAY,
     {2, true, true}},
    {GL_SAMPLER_2D_MULTISAMPLE,
     GL_INT_SAMPLER_2D_MULTISAMPLE,
     GL_UNSIGNED_INT_SAMPLER_2D_MULTISAMPLE,
     "sampler2DMS",
     GL_NONE,
     {2}},
    {GL_SAMPLER_2D_MULTISAMPLE_ARRAY,
     GL_INT_SAMPLER_2D_MULTISAMPLE_ARRAY,
     GL_UNSIGNED_INT_SAMPLER_2D_MULTISAMPLE_ARRAY,
     "sampler2DMSArray",
     GL_NONE,
     {2, true}},
    {GL_SAMPLER_1D_SHADOW, GL_NONE, GL_NONE, "sampler1DShadow", GL_NONE, {1}},
    {GL_SAMPLER_2D_SHADOW, GL_NONE, GL_NONE, "sampler2DShadow", GL_NONE, {2}},
    {GL_SAMPLER_2D_RECT_SHADOW, GL_NONE, GL_NONE, "sampler2DRectShadow", GL_NONE, {2}},
    {GL_SAMPLER_CUBE_SHADOW, GL_NONE, GL_NONE, "samplerCubeShadow", GL_NONE, {2, false, true}},
    {GL_SAMPLER_1D_ARRAY_SHADOW, GL_NONE, GL_NONE, "sampler1DArrayShadow", GL_NONE, {1, true}},
    {GL_SAMPLER_2D_ARRAY_SHADOW, GL_NONE, GL_NONE, "sampler2DArrayShadow", GL_NONE, {2, true}},
    {GL_SAMPLER_CUBE_MAP_ARRAY_SHADOW, GL_NONE, GL_NONE, "samplerCubeArrayShadow", GL_NONE, {2, true, true}},
};

}  // namespace

ElementType element_of(std::string_view type) noexcept {
  const auto* found = std::find_if(std::begin(numeric_types), std::end(numeric_types),
                                   [type](const TypeFacts& facts) { return facts.name == type; });
  return found == std::end(numeric_types) ? ElementType::unknown : found->element;
}

const TypeFacts* facts_of(GLenum type) noexcept {
  const auto* found = std::find_if(std::begin(numeric_types), std::end(numeric_types),
                                   [type](const TypeFacts& facts) { return facts.type == type; });
  return found == std::end(numeric_types) ? nullptr : found;
}

std::uint32_t bytes_of(ElementType element) noexcept {
  return element == ElementType::f64 || element == ElementType::i64 || element == ElementType::u64 ? 8 : 4;
}

ElementType common(ElementType a, ElementType b) noexcept {
  const auto is_word = [](ElementType one) {
    return one == ElementType::boolean || one == ElementType::i32 || one == ElementType::u32;
  };
  const auto is_long = [](ElementType one) { return one == ElementType::i64 || one == ElementType::u64; };
  if (a == b || (is_word(a) && is_word(b)) || (is_long(a) && is_long(b))) return a;
  return ElementType::unknown;
}

ElementType element_of(const std::vector<std::string>& types) noexcept {
  if (types.empty()) return ElementType::unknown;
  ElementType element = element_of(types.front());
  for (const std::string& type : types) element = common(element, element_of(type));
  return element;
}

const TextureFacts* texture_facts_of(GLenum type) noexcept {
  const auto* found = std::ranges::find_if(texture_types, [type](const TextureFacts& facts) {
    return type != GL_NONE && (facts.first == type || facts.of_int == type || facts.of_uint == type);
  });
  return found == std::end(texture_types) ? nullptr : found;
}

}  // namespace kiln::opengl
