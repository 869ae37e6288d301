// Which calls build, store and load a program and set its uniforms: a table of functions of this file stands for the
// driver.
#include "codec/program_codec.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace kiln::opengl {
namespace {

// What the driver answers, and what it was asked.
struct ProgramAnswers {
  bool compiles = true, links = true;
  GLint workgroup[3] = {64, 1, 1};
  GLint binary_length = 0;
  GLsizei written = 0;
  std::string log = "the log";
  Status status;  // of the check behind a call
  std::vector<std::byte> given;
  GLenum given_format = 0;
  int deleted = 0;
};
ProgramAnswers answers;

Gl answering_driver() {
  Gl gl{};
  gl.CreateShader = [](GLenum) -> GLuint { return 1; };
  gl.DeleteShader = [](GLuint) {};
  gl.CreateProgram = []() -> GLuint { return 2; };
  gl.DeleteProgram = [](GLuint) { ++answers.deleted; };
  gl.ShaderSource = [](GLuint, GLsizei, const GLchar* const*, const GLint*) {};
  gl.CompileShader = [](GLuint) {};
  gl.GetShaderiv = [](GLuint, GLenum what, GLint* value) {
    *value = what == GL_COMPILE_STATUS ? (answers.compiles ? 1 : 0) : static_cast<GLint>(answers.log.size()) + 1;
  };
  const auto read_log = [](GLuint, GLsizei most, GLsizei* length, GLchar* to) {
    const auto bytes = std::min(answers.log.size(), static_cast<std::size_t>(most) - 1);
    std::memcpy(to, answers.log.c_str(), bytes + 1);
    if (length != nullptr) *length = static_cast<GLsizei>(bytes);
  };
  gl.GetShaderInfoLog = read_log;
  gl.GetProgramInfoLog = read_log;
  gl.ProgramParameteri = [](GLuint, GLenum, GLint) {};
  gl.AttachShader = [](GLuint, GLuint) {};
  gl.DetachShader = [](GLuint, GLuint) {};
  gl.LinkProgram = [](GLuint) {};
  gl.GetProgramiv = [](GLuint, GLenum what, GLint* value) {
    if (what == GL_COMPUTE_WORK_GROUP_SIZE) {
      std::copy_n(answers.workgroup, 3, value);
    } else {
      *value = what == GL_LINK_STATUS             ? (answers.links ? 1 : 0)
               : what == GL_PROGRAM_BINARY_LENGTH ? answers.binary_length
                                                  : static_cast<GLint>(answers.log.size()) + 1;
    }
  };
  gl.GetProgramBinary = [](GLuint, GLsizei most, GLsizei* written, GLenum* format, void* to) {
    for (GLsizei i = 0; i < most; ++i) static_cast<std::byte*>(to)[i] = static_cast<std::byte>(i + 1);
    *written = answers.written;
    *format = 0x875f;
  };
  gl.ProgramBinary = [](GLuint, GLenum format, const void* bytes, GLsizei length) {
    answers.given_format = format;
    answers.given.assign(static_cast<const std::byte*>(bytes), static_cast<const std::byte*>(bytes) + length);
  };
  gl.GetString = [](GLenum) -> const GLubyte* { return reinterpret_cast<const GLubyte*>("4.5 fake"); };
  gl.GetProgramInterfaceiv = [](GLuint, GLenum, GLenum, GLint* value) { *value = 0; };
  return gl;
}

CurrentContext answering_context(const Gl& gl) {
  return {gl, "opengl:7", DeviceKind::software, false, [](std::string_view) { return answers.status; }};
}

KernelSource short_source() {
  KernelSource source;
  source.dialect = Dialect::glsl;
  source.text = "void main() {}";
  return source;
}

ProgramBinary stored_binary(const CurrentContext& context) {
  answers.binary_length = answers.written = 5;
  auto binary = serialize_program(context, 2, Reflection());
  REQUIRE(binary);
  return *binary;
}

}  // namespace

TEST_CASE("opengl: program calls: a build says what failed, and what a program costs", "[opengl][codec]") {
  const Gl gl = answering_driver();
  const CurrentContext context = answering_context(gl);
  std::atomic<std::uint64_t> counter{0};
  answers = {};
  KernelSource source = short_source();
  {
    answers.binary_length = 1000;
    const auto built = build_program(context, source, source.text, counter);
    REQUIRE(built);
    CHECK(built->get() == 2u);
    CHECK(built->charge() == 81920 + 16 * 1000);
    CHECK(counter == 1);
  }
  CHECK(answers.deleted == 1);
  for (const GLint length : {0, -1}) {  // the text stands in for what the driver does not tell
    answers.binary_length = length;
    CHECK(build_program(context, source, source.text, counter)->charge() == 81920 + 16 * 14);
  }
  answers.deleted = 0;
  const auto refused = [&] {
    const auto built = build_program(context, source, source.text, counter);
    REQUIRE_FALSE(built);
    return built.error();
  };
  answers.compiles = false;
  CHECK(refused().text() == "invalid_argument: opengl:7: GLSL compiler: the log");
  answers.compiles = true;
  answers.links = false;
  CHECK(refused().text() == "invalid_argument: opengl:7: GLSL linker: the log");
  source.files = {"mine.comp"};
  CHECK(refused().message == "opengl:7: mine.comp: GLSL linker: the log");
  answers.links = true;
  source.workgroup = {64, 2, 1};
  CHECK(refused().code == StatusCode::invalid_argument);
  CHECK_THAT(refused().message, Catch::StartsWith("opengl:7: "));
  answers.workgroup[1] = 2;
  CHECK(build_program(context, source, source.text, counter).has_value());
  answers.status = unavailable("no memory");
  CHECK(refused().code == StatusCode::unavailable);
  CHECK(answers.deleted == 7);
}

TEST_CASE("opengl: program calls: a stored program is the driver's bytes and its resources", "[opengl][codec]") {
  const Gl gl = answering_driver();
  const CurrentContext context = answering_context(gl);
  std::atomic<std::uint64_t> counter{0};
  answers = {};
  CHECK(serialize_program(context, 2, Reflection()).error().text() ==
        "unsupported: opengl:7: the driver returned no binary for the program");
  answers.binary_length = 9;
  answers.written = 0;
  CHECK(serialize_program(context, 2, Reflection()).error().code == StatusCode::unsupported);
  answers.status = unavailable("no memory");
  CHECK(serialize_program(context, 2, Reflection()).error().code == StatusCode::unavailable);
  answers.status = {};
  answers.written = 5;  // fewer than there is room for
  const auto binary = serialize_program(context, 2, Reflection());
  REQUIRE(binary);
  CHECK(binary->format == "gl2:875f");
  const auto loaded = load_program(context, short_source(), *binary, {0x1, 0x875f}, counter);
  REQUIRE(loaded);
  CHECK(answers.given_format == 0x875fu);
  CHECK(answers.given == std::vector<std::byte>{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{5}});
  CHECK(loaded->charge() == 81920 + 16 * 5);
  CHECK(counter == 1);
}

TEST_CASE("opengl: program calls: a stored program that cannot be used says why", "[opengl][codec]") {
  const Gl gl = answering_driver();
  const CurrentContext context = answering_context(gl);
  std::atomic<std::uint64_t> counter{0};
  answers = {};
  const ProgramBinary binary = stored_binary(context);
  const auto refused = [&](const ProgramBinary& from, const std::vector<GLenum>& formats = {0x875f}) {
    const auto loaded = load_program(context, short_source(), from, formats, counter);
    REQUIRE_FALSE(loaded);
    return loaded.error();
  };
  CHECK(refused(binary, {}).text() ==
        "unsupported: opengl:7: program binary of format 'gl2:875f', the driver supports none");
  CHECK(refused(binary, {0x12, 0xabcd}).message ==
        "opengl:7: program binary of format 'gl2:875f', the driver supports gl2:0012, gl2:abcd");
  const std::string what =
      "opengl:7: program binary of " + std::to_string(binary.bytes.size()) + " bytes, format gl2:875f: ";
  CHECK(refused({"gl2:875f", {}}).text() ==
        "corrupt: opengl:7: program binary of 0 bytes, format gl2:875f: expected at least 1 byte");
  const std::string damaged = ": the stored list of the program's resources is damaged";
  ProgramBinary cut = binary;
  cut.bytes.pop_back();
  CHECK_THAT(refused(cut).text(), Catch::StartsWith("corrupt: ") && Catch::EndsWith(damaged));
  for (const std::size_t length : {1, 3, 4}) {
    cut.bytes.resize(length);
    CHECK_THAT(refused(cut).message, Catch::EndsWith(damaged));
  }
  CHECK(counter == 0);  // nothing of these reached the driver
  answers.links = false;
  CHECK(refused(binary).text() == "corrupt: " + what + "the driver rejected the binary: the log");
  answers.links = true;
  answers.status = internal_error("GL_INVALID_ENUM");
  CHECK(refused(binary).text() == "corrupt: " + what + "the driver rejected the binary: GL_INVALID_ENUM");
  answers.status = device_lost("gone");
  CHECK(refused(binary).text() == "device_lost: gone");
  answers.status = {};
  KernelSource other = short_source();
  other.workgroup = {32, 1, 1};
  const auto loaded = load_program(context, other, binary, {0x875f}, counter);
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().code == StatusCode::corrupt);
  CHECK_THAT(loaded.error().message, Catch::StartsWith(what));
}

namespace {

struct UniformCall {
  std::string function;
  GLint location = 0;
  GLsizei count = 0;
  const void* values = nullptr;
};
UniformCall uniform_call;

Gl uniform_driver() {
  Gl gl{};
#define KILN_VECTOR(function, Type)                                                           \
  gl.ProgramUniform##function = [](GLuint program, GLint at, GLsizei n, const Type* values) { \
    uniform_call = {std::to_string(program) + " " #function, at, n, values};                  \
  }
#define KILN_MATRIX(function, Type)                                                                                   \
  gl.ProgramUniformMatrix##function = [](GLuint program, GLint at, GLsizei n, GLboolean turned, const Type* values) { \
    const char* const which = turned == GL_FALSE ? " Matrix" #function : " turned Matrix" #function;                  \
    uniform_call = {std::to_string(program) + which, at, n, values};                                                  \
  }
  KILN_VECTOR(1fv, GLfloat);
  KILN_VECTOR(2fv, GLfloat);
  KILN_VECTOR(3fv, GLfloat);
  KILN_VECTOR(4fv, GLfloat);
  KILN_VECTOR(1dv, GLdouble);
  KILN_VECTOR(2dv, GLdouble);
  KILN_VECTOR(3dv, GLdouble);
  KILN_VECTOR(4dv, GLdouble);
  KILN_VECTOR(1iv, GLint);
  KILN_VECTOR(2iv, GLint);
  KILN_VECTOR(3iv, GLint);
  KILN_VECTOR(4iv, GLint);
  KILN_VECTOR(1uiv, GLuint);
  KILN_VECTOR(2uiv, GLuint);
  KILN_VECTOR(3uiv, GLuint);
  KILN_VECTOR(4uiv, GLuint);
  KILN_VECTOR(1i64vARB, GLint64);
  KILN_VECTOR(2i64vARB, GLint64);
  KILN_VECTOR(3i64vARB, GLint64);
  KILN_VECTOR(4i64vARB, GLint64);
  KILN_VECTOR(1ui64vARB, GLuint64);
  KILN_VECTOR(2ui64vARB, GLuint64);
  KILN_VECTOR(3ui64vARB, GLuint64);
  KILN_VECTOR(4ui64vARB, GLuint64);
  KILN_MATRIX(2fv, GLfloat);
  KILN_MATRIX(3fv, GLfloat);
  KILN_MATRIX(4fv, GLfloat);
  KILN_MATRIX(2x3fv, GLfloat);
  KILN_MATRIX(2x4fv, GLfloat);
  KILN_MATRIX(3x2fv, GLfloat);
  KILN_MATRIX(3x4fv, GLfloat);
  KILN_MATRIX(4x2fv, GLfloat);
  KILN_MATRIX(4x3fv, GLfloat);
  KILN_MATRIX(2dv, GLdouble);
  KILN_MATRIX(3dv, GLdouble);
  KILN_MATRIX(4dv, GLdouble);
  KILN_MATRIX(2x3dv, GLdouble);
  KILN_MATRIX(2x4dv, GLdouble);
  KILN_MATRIX(3x2dv, GLdouble);
  KILN_MATRIX(3x4dv, GLdouble);
  KILN_MATRIX(4x2dv, GLdouble);
  KILN_MATRIX(4x3dv, GLdouble);
#undef KILN_VECTOR
#undef KILN_MATRIX
  return gl;
}

}  // namespace

TEST_CASE("opengl: program calls: each type of uniform is set by the function for it", "[opengl][codec]") {
  const struct {
    GLenum type;  // by OpenGL's numbers
    const char* function;
  } types[] = {{0x1406, "1fv"},         {0x8B50, "2fv"},         {0x8B51, "3fv"},         {0x8B52, "4fv"},
               {0x140A, "1dv"},         {0x8FFC, "2dv"},         {0x8FFD, "3dv"},         {0x8FFE, "4dv"},
               {0x1404, "1iv"},         {0x8B53, "2iv"},         {0x8B54, "3iv"},         {0x8B55, "4iv"},
               {0x1405, "1uiv"},        {0x8DC6, "2uiv"},        {0x8DC7, "3uiv"},        {0x8DC8, "4uiv"},
               {0x8B56, "1iv"},         {0x8B57, "2iv"},         {0x8B58, "3iv"},         {0x8B59, "4iv"},
               {0x8B5A, "Matrix2fv"},   {0x8B5B, "Matrix3fv"},   {0x8B5C, "Matrix4fv"},   {0x8B65, "Matrix2x3fv"},
               {0x8B66, "Matrix2x4fv"}, {0x8B67, "Matrix3x2fv"}, {0x8B68, "Matrix3x4fv"}, {0x8B69, "Matrix4x2fv"},
               {0x8B6A, "Matrix4x3fv"}, {0x8F46, "Matrix2dv"},   {0x8F47, "Matrix3dv"},   {0x8F48, "Matrix4dv"},
               {0x8F49, "Matrix2x3dv"}, {0x8F4A, "Matrix2x4dv"}, {0x8F4B, "Matrix3x2dv"}, {0x8F4C, "Matrix3x4dv"},
               {0x8F4D, "Matrix4x2dv"}, {0x8F4E, "Matrix4x3dv"}, {0x140E, "1i64vARB"},    {0x8FE9, "2i64vARB"},
               {0x8FEA, "3i64vARB"},    {0x8FEB, "4i64vARB"},    {0x140F, "1ui64vARB"},   {0x8FF5, "2ui64vARB"},
               {0x8FF6, "3ui64vARB"},   {0x8FF7, "4ui64vARB"}};
  const Gl gl = uniform_driver();
  const std::byte values[256] = {};
  for (const auto& each : types) {
    INFO(each.function);
    uniform_call = {};
    set_uniform(gl, 9, PlainUniform{21, each.type, 3, {}}, values);
    CHECK(uniform_call.function == std::string("9 ") + each.function);
    CHECK(uniform_call.location == 21);
    CHECK(uniform_call.count == 3);
    CHECK(uniform_call.values == values);
  }
  uniform_call = {};
  set_uniform(gl, 9, PlainUniform{21, 0x8B5E, 1, {}}, values);  // a sampler has no value
  CHECK(uniform_call.function == "");
}

}  // namespace kiln::opengl
