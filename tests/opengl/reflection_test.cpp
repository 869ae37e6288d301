// What a program's interface becomes, on an OpenGL that this test makes: it answers the queries from a table, as the
// specification says, and compiles nothing.
#include "codec/reflection.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace kiln::opengl {
namespace {

struct FakeResource {
  std::string name;
  std::map<GLenum, GLint> properties{};  // what is left out is 0
  std::vector<GLint> variables{};        // of a block
};
using FakeProgram = std::map<GLenum, std::vector<FakeResource>>;  // by interface

const FakeProgram* fake_program = nullptr;  // what the functions below answer from

const FakeResource& fake_resource(GLenum interface, GLuint index) { return fake_program->at(interface).at(index); }

GLint fake_property(const FakeResource& resource, GLenum property) {
  if (property == GL_NAME_LENGTH) return static_cast<GLint>(resource.name.size()) + 1;  // with its terminating zero
  if (property == GL_NUM_ACTIVE_VARIABLES) return static_cast<GLint>(resource.variables.size());
  const auto at = resource.properties.find(property);
  return at == resource.properties.end() ? 0 : at->second;
}

// REQUIRES: the program outlives the table's use.
Gl functions_of(const FakeProgram& program) {
  fake_program = &program;
  Gl gl{};
  gl.GetString = [](GLenum) -> const GLubyte* { return reinterpret_cast<const GLubyte*>("4.5 (Core Profile) fake"); };
  gl.GetProgramInterfaceiv = [](GLuint, GLenum interface, GLenum property, GLint* value) {
    const auto at = fake_program->find(interface);
    const bool asked = property == GL_ACTIVE_RESOURCES && at != fake_program->end();
    *value = asked ? static_cast<GLint>(at->second.size()) : 0;
  };
  gl.GetProgramResourceiv = [](GLuint, GLenum interface, GLuint index, GLsizei count, const GLenum* wanted, GLsizei,
                               GLsizei*, GLint* values) {
    const FakeResource& resource = fake_resource(interface, index);
    for (GLsizei i = 0; i < count; ++i) {
      if (wanted[i] == GL_ACTIVE_VARIABLES) {
        std::copy(resource.variables.begin(), resource.variables.end(), values);
        return;
      }
      values[i] = fake_property(resource, wanted[i]);
    }
  };
  gl.GetProgramResourceName = [](GLuint, GLenum interface, GLuint index, GLsizei most, GLsizei* written, GLchar* to) {
    const std::string& name = fake_resource(interface, index).name;
    const std::size_t length = std::min(name.size(), static_cast<std::size_t>(most) - 1);
    std::memcpy(to, name.c_str(), length);
    to[length] = '\0';
    *written = static_cast<GLsizei>(length);
  };
  // The value of a uniform is its location, and a half where it has fractions.
  gl.GetUniformiv = [](GLuint, GLint location, GLint* value) { *value = location; };
  gl.GetUniformfv = [](GLuint, GLint location, GLfloat* value) { *value = static_cast<GLfloat>(location) + 0.5f; };
  return gl;
}

FakeResource fake_uniform(std::string name, GLenum type, GLint size, GLint location) {
  FakeResource uniform;
  uniform.name = std::move(name);
  uniform.properties[GL_TYPE] = static_cast<GLint>(type);
  uniform.properties[GL_ARRAY_SIZE] = size;
  uniform.properties[GL_LOCATION] = location;
  uniform.properties[GL_BLOCK_INDEX] = -1;
  uniform.properties[GL_ATOMIC_COUNTER_BUFFER_INDEX] = -1;
  return uniform;
}

FakeResource fake_member(std::string name, GLenum type, GLint size, GLint offset, GLint array_stride = 0,
                         GLint matrix_stride = 0) {
  FakeResource member = fake_uniform(std::move(name), type, size, -1);
  member.properties[GL_BLOCK_INDEX] = 0;
  member.properties[GL_OFFSET] = offset;
  member.properties[GL_ARRAY_STRIDE] = array_stride;
  member.properties[GL_MATRIX_STRIDE] = matrix_stride;
  return member;
}

KernelSource source_of(std::string text) {
  KernelSource source;
  source.dialect = Dialect::glsl;
  source.text = std::move(text);
  return source;
}

struct ExpectedResource {
  ResourceKind kind;
  std::string name, type;
  ElementType element;
  std::vector<std::uint32_t> shape;
  bool matrix;
  std::uint64_t bytes;
  std::string block;
  bool mentioned, has_default;
};

}  // namespace

TEST_CASE("opengl: reflection: uniforms, members of blocks and counters become resources", "[opengl][codec]") {
  FakeProgram program;
  FakeResource block;
  block.name = "Params";
  block.properties[GL_BUFFER_BINDING] = 5;
  block.properties[GL_BUFFER_DATA_SIZE] = 144;
  block.variables = {0, 1, 2, 3, 4};
  program[GL_UNIFORM_BLOCK].push_back(block);
  FakeResource counters;
  counters.properties[GL_BUFFER_BINDING] = 2;
  program[GL_ATOMIC_COUNTER_BUFFER].push_back(counters);
  FakeResource hits = fake_uniform("hits", GL_UNSIGNED_INT_ATOMIC_COUNTER, 1, -1);
  hits.properties[GL_ATOMIC_COUNTER_BUFFER_INDEX] = 0;
  hits.properties[GL_OFFSET] = 4;
  program[GL_UNIFORM] = {fake_member("Params.light", GL_FLOAT_VEC4, 1, 0),
                         fake_member("Params.idle", GL_FLOAT, 1, 16),
                         fake_member("Params.lamp.power", GL_INT, 1, 32),
                         fake_member("Params.steps[0]", GL_FLOAT, 3, 48, 16),
                         fake_member("Params.turn", GL_FLOAT_MAT3, 1, 96, 0, 16),
                         fake_uniform("view", GL_FLOAT_MAT4, 1, 0),
                         fake_uniform("places[0]", GL_INT_VEC2, 3, 4),
                         fake_uniform("skew", GL_FLOAT_MAT2x3, 1, 7),
                         fake_uniform("gain", GL_FLOAT, 1, 9),
                         hits};
  const std::string text =
      "#version 430\n"
      "struct Lamp { int power; };\n"
      "layout(std140, binding = 5) uniform Params {\n"
      "  vec4 light; float idle; Lamp lamp; float steps[3]; mat3 turn;\n"
      "} p;\n"
      "uniform mat4 view;\n"
      "uniform ivec2 places[3];\n"
      "uniform mat2x3 skew;\n"
      "uniform float gain = 9.5;\n"
      "layout(binding = 2, offset = 4) uniform atomic_uint hits;\n"
      "void main() { use(p.light, p.steps[1], p.turn, view, places[2], skew, gain, atomicCounter(hits)); }\n";
  const Reflection reflection = reflect(functions_of(program), 1, source_of(text));

  const ExpectedResource expected[] = {
      {ResourceKind::uniform_block, "Params", "", ElementType::unknown, {}, false, 144, "", true, false},
      {ResourceKind::uniform, "Params.light", "vec4", ElementType::f32, {4}, false, 16, "Params", true, false},
      {ResourceKind::uniform, "Params.idle", "float", ElementType::f32, {}, false, 4, "Params", false, false},
      {ResourceKind::uniform, "Params.lamp.power", "int", ElementType::i32, {}, false, 4, "Params", false, false},
      {ResourceKind::uniform, "Params.steps", "float[3]", ElementType::f32, {3}, false, 12, "Params", true, false},
      {ResourceKind::uniform, "Params.turn", "mat3", ElementType::f32, {3, 3}, true, 36, "Params", true, false},
      {ResourceKind::uniform, "view", "mat4", ElementType::f32, {4, 4}, true, 64, "", true, false},
      {ResourceKind::uniform, "places", "ivec2[3]", ElementType::i32, {3, 2}, false, 24, "", true, false},
      {ResourceKind::uniform, "skew", "mat2x3", ElementType::f32, {3, 2}, true, 24, "", true, false},
      {ResourceKind::uniform, "gain", "float", ElementType::f32, {}, false, 4, "", true, true},
      {ResourceKind::atomic_counter, "hits", "atomic_uint", ElementType::u32, {}, false, 8, "", true, false}};
  const std::vector<ProgramResource>& found = reflection.interface.resources;
  REQUIRE(found.size() == std::size(expected));
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO(expected[i].name);
    CHECK(found[i].kind == expected[i].kind);
    CHECK(found[i].name == expected[i].name);
    CHECK(found[i].type == expected[i].type);
    CHECK(found[i].element == expected[i].element);
    CHECK(found[i].shape == expected[i].shape);
    CHECK(found[i].matrix == expected[i].matrix);
    CHECK(found[i].bytes == expected[i].bytes);
    CHECK(found[i].block == expected[i].block);
    CHECK(found[i].mentioned == expected[i].mentioned);
    CHECK(found[i].has_default == expected[i].has_default);
    CHECK(found[i].unusable == "");
  }
  CHECK(found[0].number == 5u);
  CHECK(found[10].number == 2u);
  CHECK(reflection.interface.unused.empty());

  REQUIRE(reflection.uniforms.size() == 9);
  const PlainUniform& steps = reflection.uniforms[3];
  CHECK(found[4].handle == 3);
  CHECK(steps.block == 0);
  CHECK(steps.place.count == 3);
  CHECK(steps.place.offset == 48);
  CHECK(steps.place.array_stride == 16);
  CHECK(reflection.uniforms[4].place.offset == 96);
  CHECK(reflection.uniforms[4].place.matrix_stride == 16);
  const PlainUniform& places = reflection.uniforms[6];
  CHECK(places.block == -1);
  CHECK(places.location == 4);
  CHECK(places.count == 3);
  const PlainUniform& gain = reflection.uniforms[8];
  float value = 0;
  REQUIRE(gain.initial.size() == sizeof value);
  std::memcpy(&value, gain.initial.data(), sizeof value);
  CHECK(value == 9.5f);
}

TEST_CASE("opengl: reflection: unused resources are listed with their bindings", "[opengl][codec]") {
  const FakeProgram nothing{};
  const std::string text =
      "layout(binding = 3) buffer Pair { float a[]; } pair[3];\n"
      "layout(binding = 7) uniform Params { float gain; } params[2];\n"
      "buffer Alone { int alone; };\n"
      "uniform float idle, table[2][4];\n"
      "layout(binding = 4) uniform sampler2D looks[2];\n"
      "struct Spot { float x; vec2 y; };\n"
      "uniform Spot spots[2];\n"
      "void main() {}\n";
  const Reflection reflection = reflect(functions_of(nothing), 1, source_of(text));
  CHECK(reflection.interface.resources.empty());

  struct Unused {
    ResourceKind kind;
    std::string name, type;
    std::uint32_t number;
    std::vector<std::uint32_t> lengths;
  };
  const Unused expected[] = {
      {ResourceKind::storage_block, "Pair[0]", "", 3, {}},     {ResourceKind::storage_block, "Pair[1]", "", 4, {}},
      {ResourceKind::storage_block, "Pair[2]", "", 5, {}},     {ResourceKind::uniform_block, "Params[0]", "", 7, {}},
      {ResourceKind::uniform_block, "Params[1]", "", 8, {}},   {ResourceKind::storage_block, "Alone", "", 0, {}},
      {ResourceKind::uniform, "idle", "float", 0, {}},         {ResourceKind::uniform, "table[0]", "float", 0, {2, 4}},
      {ResourceKind::uniform, "table[1]", "float", 0, {2, 4}}, {ResourceKind::uniform, "looks", "sampler2D", 4, {2}},
      {ResourceKind::uniform, "spots[0].x", "float", 0, {}},   {ResourceKind::uniform, "spots[1].x", "float", 0, {}},
      {ResourceKind::uniform, "spots[0].y", "vec2", 0, {}},    {ResourceKind::uniform, "spots[1].y", "vec2", 0, {}}};
  const std::vector<ProgramResource>& found = reflection.interface.unused;
  REQUIRE(found.size() == std::size(expected));
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO(expected[i].name);
    CHECK(found[i].kind == expected[i].kind);
    CHECK(found[i].name == expected[i].name);
    CHECK(found[i].type == expected[i].type);
    REQUIRE(found[i].number.has_value());
    CHECK(*found[i].number == expected[i].number);
    CHECK(found[i].lengths == expected[i].lengths);
  }
}

}  // namespace kiln::opengl
