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
  gl.GetUniformdv = [](GLuint, GLint location, GLdouble* value) { *value = location + 0.25; };
  gl.GetUniformuiv = [](GLuint, GLint location, GLuint* value) { *value = 0x80000000u + location; };
  gl.GetUniformi64vARB = [](GLuint, GLint location, GLint64* value) { *value = -(GLint64{1} << 40) - location; };
  gl.GetUniformui64vARB = [](GLuint, GLint location, GLuint64* value) { *value = (GLuint64{1} << 63) + location; };
  gl.GetIntegerv = [](GLenum, GLint* value) { *value = 3; };
  gl.GetStringi = [](GLenum, GLuint i) -> const GLubyte* {
    constexpr const char* names[] = {"GL_ARB_first", nullptr, "GL_ARB_third"};
    return reinterpret_cast<const GLubyte*>(names[i]);
  };
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

namespace {

template <class Value>
std::vector<Value> initial_values(const PlainUniform& uniform) {
  REQUIRE(uniform.initial.size() % sizeof(Value) == 0);
  std::vector<Value> values(uniform.initial.size() / sizeof(Value));
  std::memcpy(values.data(), uniform.initial.data(), uniform.initial.size());
  return values;
}

const GLubyte* mesa_version(GLenum) { return reinterpret_cast<const GLubyte*>("4.5 (Core Profile) Mesa 22.3.6"); }

}  // namespace

TEST_CASE("opengl: reflection: a uniform of each element type has its value after linking", "[opengl][codec]") {
  FakeProgram program;
  program[GL_UNIFORM] = {fake_uniform("a", GL_INT, 1, 3),
                         fake_uniform("b", GL_UNSIGNED_INT, 1, 4),
                         fake_uniform("c", GL_DOUBLE, 1, 5),
                         fake_uniform("d", 0x140E, 1, 6),
                         fake_uniform("e", 0x140F, 1, 7),
                         fake_uniform("f[0]", GL_FLOAT, 2, 8),
                         fake_uniform("gl_NumWorkGroups", GL_UNSIGNED_INT_VEC3, 1, 10)};
  const Reflection reflection = reflect(functions_of(program), 1, source_of("void main() {}"));
  REQUIRE(reflection.uniforms.size() == 6);
  CHECK(initial_values<GLint>(reflection.uniforms[0]) == std::vector<GLint>{3});
  CHECK(initial_values<GLuint>(reflection.uniforms[1]) == std::vector<GLuint>{0x80000004u});
  CHECK(initial_values<GLdouble>(reflection.uniforms[2]) == std::vector<GLdouble>{5.25});
  CHECK(initial_values<GLint64>(reflection.uniforms[3]) == std::vector<GLint64>{-(GLint64{1} << 40) - 6});
  CHECK(initial_values<GLuint64>(reflection.uniforms[4]) == std::vector<GLuint64>{(GLuint64{1} << 63) + 7});
  CHECK(initial_values<GLfloat>(reflection.uniforms[5]) == std::vector<GLfloat>{8.5f, 9.5f});
}

TEST_CASE("opengl: reflection: textures, each of an array with its unit", "[opengl][codec]") {
  FakeProgram program;
  program[GL_UNIFORM] = {fake_uniform("plain", 0x8B5E, 1, 3),      // sampler2D
                         fake_uniform("counts[0]", 0x8DD3, 2, 5),  // usampler3D
                         fake_uniform("signs", 0x9058, 1, -1),     // iimage2D
                         fake_uniform("depth", 0x8B62, 1, 8),      // sampler2DShadow
                         fake_uniform("strange", 0x7777, 1, 9)};
  const Reflection reflection = reflect(functions_of(program), 1, source_of("void main() {}"));
  const struct {
    ResourceKind kind;
    const char* name;
    const char* type;
    ElementType element;
    std::uint32_t unit;
    bool usable;
  } expected[] = {{ResourceKind::sampler, "plain", "sampler2D", ElementType::f32, 3, true},
                  {ResourceKind::sampler, "counts[0]", "usampler3D", ElementType::u32, 5, true},
                  {ResourceKind::sampler, "counts[1]", "usampler3D", ElementType::u32, 6, true},
                  {ResourceKind::image, "signs", "iimage2D", ElementType::i32, 0, true},
                  {ResourceKind::sampler, "depth", "sampler2DShadow", ElementType::f32, 8, false},
                  {ResourceKind::sampler, "strange", "type 30583", ElementType::unknown, 9, false}};
  const std::vector<ProgramResource>& found = reflection.interface.resources;
  REQUIRE(found.size() == std::size(expected));
  REQUIRE(reflection.textures.size() == std::size(expected));
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO(expected[i].name);
    CHECK(found[i].kind == expected[i].kind);
    CHECK(found[i].name == expected[i].name);
    CHECK(found[i].type == expected[i].type);
    CHECK(found[i].element == expected[i].element);
    CHECK(found[i].number == expected[i].unit);
    CHECK(found[i].handle == static_cast<std::int64_t>(i));
    CHECK(found[i].unusable == (expected[i].usable ? "" : "a job cannot provide this type"));
  }
  CHECK(reflection.textures[2].location == 6);
}

TEST_CASE("opengl: reflection: a subroutine uniform cannot be used by a job", "[opengl][codec]") {
  FakeProgram program;
  program[GL_COMPUTE_SUBROUTINE_UNIFORM].push_back({"one"});
  program[GL_COMPUTE_SUBROUTINE_UNIFORM].push_back({"two"});
  const auto found = reflect(functions_of(program), 1, source_of("void main() {}")).interface.resources;
  REQUIRE(found.size() == 2);
  CHECK(found[0].name == "one");
  CHECK(found[1].name == "two");
  CHECK(found[1].kind == ResourceKind::uniform);
  CHECK(found[1].type == "subroutine");
  CHECK_THAT(found[1].unusable, Catch::StartsWith("a job cannot choose the function of a subroutine uniform"));
}

TEST_CASE("opengl: reflection: on Mesa a struct with members of 32 and 64 bits cannot be used", "[opengl][codec]") {
  FakeProgram program;
  program[GL_UNIFORM] = {fake_uniform("mixed.a", GL_FLOAT, 1, 0),    fake_uniform("mixed.b", GL_DOUBLE, 1, 1),
                         fake_uniform("equal.a", GL_FLOAT, 1, 2),    fake_uniform("equal.b", GL_INT, 1, 3),
                         fake_uniform("rows[1].a", GL_DOUBLE, 1, 4), fake_uniform("rows[0].b", GL_FLOAT, 1, 5),
                         fake_uniform("lone", GL_DOUBLE, 1, 6)};
  Gl gl = functions_of(program);
  for (const ProgramResource& each : reflect(gl, 1, source_of("void main() {}")).interface.resources) {
    CHECK(each.unusable == "");
  }
  gl.GetString = mesa_version;
  for (const ProgramResource& each : reflect(gl, 1, source_of("void main() {}")).interface.resources) {
    INFO(each.name);
    const bool refused = each.name.starts_with("mixed") || each.name.starts_with("rows");
    CHECK(each.unusable.starts_with("Mesa reads wrong values from a struct") == refused);
    CHECK(each.unusable.empty() == !refused);
  }
}

TEST_CASE("opengl: reflection: a text has the macros of the driver's extensions that it names", "[opengl][codec]") {
  const FakeProgram nothing{};
  const auto found = reflect(functions_of(nothing), 1,
                             source_of("#ifdef GL_ARB_first\nuniform float a;\n#endif\n"
                                       "#ifdef GL_ARB_second\nuniform float b;\n#endif\n"
                                       "#if GL_ARB_third == 1\nuniform float c;\n#endif\nvoid main() {}\n"))
                         .interface.unused;
  REQUIRE(found.size() == 2);
  CHECK(found[0].name == "a");
  CHECK(found[1].name == "c");
}

TEST_CASE("opengl: reflection: members of a block in rows, and of an array of blocks", "[opengl][codec]") {
  FakeProgram program;
  FakeResource block;
  block.name = "Params[1]";
  block.properties[GL_BUFFER_BINDING] = 6;
  block.properties[GL_BUFFER_DATA_SIZE] = 64;
  block.variables = {0, 1};
  program[GL_UNIFORM_BLOCK].push_back(block);
  FakeResource rows = fake_member("Params.turn", GL_FLOAT_MAT2, 1, 0, 0, 16);
  rows.properties[GL_IS_ROW_MAJOR] = 1;
  program[GL_UNIFORM] = {rows, fake_member("bare", GL_FLOAT, 1, 32, -1, -1)};
  const Reflection reflection = reflect(functions_of(program), 1, source_of("void main() {}"));
  REQUIRE(reflection.interface.resources.size() == 3);
  CHECK(reflection.interface.resources[1].name == "Params[1].turn");
  CHECK(reflection.interface.resources[2].name == "Params[1].bare");
  CHECK(reflection.interface.resources[2].block == "Params[1]");
  REQUIRE(reflection.uniforms.size() == 2);
  CHECK(reflection.uniforms[0].place.row_major);
  CHECK_FALSE(reflection.uniforms[1].place.row_major);
  CHECK(reflection.uniforms[1].place.array_stride == 0);  // -1: no array
  CHECK(reflection.uniforms[1].place.offset == 32);
}

FakeResource variable(GLenum type, GLint size, GLint offset, GLint stride, GLint top_size, GLint top_stride) {
  FakeResource made;
  made.name = "Block.a[0].b";
  made.properties = {{GL_TYPE, static_cast<GLint>(type)},
                     {GL_ARRAY_SIZE, size},
                     {GL_OFFSET, offset},
                     {GL_ARRAY_STRIDE, stride},
                     {GL_TOP_LEVEL_ARRAY_SIZE, top_size},
                     {GL_TOP_LEVEL_ARRAY_STRIDE, top_stride}};
  return made;
}

TEST_CASE("opengl: reflection: blocks beside a fixed array of structs have on Mesa only their size",
          "[opengl][codec]") {
  FakeProgram program;
  program[GL_SHADER_STORAGE_BLOCK] = {{"Structs", {{GL_BUFFER_DATA_SIZE, 64}}, {0}},
                                      {"Block", {{GL_BUFFER_DATA_SIZE, 32}}, {1}}};
  program[GL_BUFFER_VARIABLE] = {variable(GL_FLOAT, 1, 0, 0, 4, 16), variable(GL_FLOAT_VEC3, 1, 0, 0, 1, 0)};
  Gl gl = functions_of(program);
  const Reflection elsewhere = reflect(gl, 1, source_of("void main() {}"));
  gl.GetString = [](GLenum) { return reinterpret_cast<const GLubyte*>("4.5 (Core Profile) Mesa 22.3.6"); };
  const Reflection on_mesa = reflect(gl, 1, source_of("void main() {}"));
  REQUIRE(elsewhere.interface.resources.size() == 2);
  REQUIRE(on_mesa.interface.resources.size() == 2);
  for (const Reflection* each : {&elsewhere, &on_mesa}) {
    const ProgramResource& structs = each->interface.resources[0];
    CHECK(structs.name == "Structs");
    CHECK(structs.bytes == 3 * 16 + 4);
    CHECK(structs.element == (each == &elsewhere ? ElementType::f32 : ElementType::unknown));
    const ProgramResource& block = each->interface.resources[1];
    CHECK(block.name == "Block");
    CHECK(block.bytes == (each == &elsewhere ? 12 : 32 - 15));  // a member may be missing behind the listed one
    CHECK(block.element == (each == &elsewhere ? ElementType::f32 : ElementType::unknown));
  }
}

TEST_CASE("opengl: reflection: storage blocks end where their last member does", "[opengl][codec]") {
  const auto one_block = [&](std::vector<FakeResource> variables, GLint bytes) {
    FakeProgram program;
    FakeResource block;
    block.name = "Block";
    block.properties[GL_BUFFER_BINDING] = 4;
    block.properties[GL_BUFFER_DATA_SIZE] = bytes;
    for (std::size_t i = 0; i < variables.size(); ++i) block.variables.push_back(static_cast<GLint>(i));
    program[GL_SHADER_STORAGE_BLOCK].push_back(block);
    program[GL_BUFFER_VARIABLE] = std::move(variables);
    const Reflection reflection = reflect(functions_of(program), 1, source_of("void main() {}"));
    REQUIRE(reflection.interface.resources.size() == 1);
    return reflection.interface.resources[0];
  };
  // vec3 and float: the driver rounds 20 up to 32.
  const ProgramResource rounded =
      one_block({variable(GL_FLOAT_VEC3, 1, 0, 0, 1, 0), variable(GL_FLOAT, 1, 16, 0, 1, 0)}, 32);
  CHECK(rounded.number == 4u);
  CHECK(rounded.bytes == 20);
  CHECK(rounded.element == ElementType::f32);
  CHECK_FALSE(rounded.open_ended);
  // float[5] in steps of 16, the one member.
  const ProgramResource fixed = one_block({variable(GL_FLOAT, 5, 0, 16, 1, 0)}, 80);
  CHECK(fixed.bytes == 68);
  CHECK(fixed.array_stride == 16);
  CHECK(fixed.element_bytes == 4);
  CHECK_FALSE(fixed.open_ended);
  // An int, then vec4[].
  const ProgramResource open =
      one_block({variable(GL_INT, 1, 0, 0, 1, 0), variable(GL_FLOAT_VEC4, 0, 16, 16, 1, 0)}, 32);
  CHECK(open.open_ended);
  CHECK(open.array_offset == 16);
  CHECK(open.array_stride == 16);
  CHECK(open.bytes == 32);
  // An open array of structs, whose members come in any order.
  const ProgramResource structs =
      one_block({variable(GL_FLOAT, 1, 12, 0, 0, 16), variable(GL_FLOAT_VEC2, 1, 0, 0, 0, 16)}, 16);
  CHECK(structs.open_ended);
  CHECK(structs.array_offset == 0);
  CHECK(structs.array_stride == 16);
  CHECK(structs.element_bytes == 12);
  CHECK(structs.struct_elements);
  // Nothing is known of a type: the driver's size.
  CHECK(one_block({variable(0x7777, 1, 0, 0, 1, 0)}, 48).bytes == 48);
  CHECK(one_block({variable(0x7777, 1, 0, 0, 1, 0)}, 48).element == ElementType::unknown);
  CHECK(one_block({}, 48).bytes == 48);
}

}  // namespace kiln::opengl
