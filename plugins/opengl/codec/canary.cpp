#include "codec/canary.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace kiln::opengl {
namespace {

constexpr const char* text =
    "#version 430 core\n"
    "layout(local_size_x = 1) in;\n"
    "layout(std430, binding = 0) buffer Data { uint value; };\n"
    "void main() { value = 1u; }\n";

Canary build(const Gl& gl) {
  const GLuint shader = gl.CreateShader(GL_COMPUTE_SHADER);
  gl.ShaderSource(shader, 1, &text, nullptr);
  gl.CompileShader(shader);
  const GLuint program = gl.CreateProgram();
  gl.ProgramParameteri(program, GL_PROGRAM_BINARY_RETRIEVABLE_HINT, GL_TRUE);
  gl.AttachShader(program, shader);
  gl.LinkProgram(program);
  GLint linked = GL_FALSE;
  gl.GetProgramiv(program, GL_LINK_STATUS, &linked);
  GLint length = 0;
  if (linked == GL_TRUE) gl.GetProgramiv(program, GL_PROGRAM_BINARY_LENGTH, &length);
  Canary canary;
  canary.binary.resize(static_cast<std::size_t>(std::max(length, 0)));
  GLsizei written = 0;
  if (length > 0) gl.GetProgramBinary(program, length, &written, &canary.format, canary.binary.data());
  canary.binary.resize(static_cast<std::size_t>(std::max(written, 0)));
  gl.DeleteProgram(program);
  gl.DeleteShader(shader);
  return canary;
}

bool takes(const Gl& gl, const Canary& canary) {
  const GLuint program = gl.CreateProgram();
  gl.ProgramBinary(program, canary.format, canary.binary.data(), static_cast<GLsizei>(canary.binary.size()));
  GLint linked = GL_FALSE;
  gl.GetProgramiv(program, GL_LINK_STATUS, &linked);
  gl.DeleteProgram(program);
  while (gl.GetError() != GL_NO_ERROR) {
  }
  return linked == GL_TRUE;
}

// A note: the format's number, then the binary.
std::vector<std::byte> encode(const Canary& canary) {
  std::vector<std::byte> bytes(sizeof canary.format);
  std::memcpy(bytes.data(), &canary.format, sizeof canary.format);
  bytes.insert(bytes.end(), canary.binary.begin(), canary.binary.end());
  return bytes;
}

Canary decode(const std::vector<std::byte>& bytes) {
  Canary canary;
  if (bytes.size() <= sizeof canary.format) return canary;
  std::memcpy(&canary.format, bytes.data(), sizeof canary.format);
  canary.binary.assign(bytes.begin() + sizeof canary.format, bytes.end());
  return canary;
}

}  // namespace

Canary read_canary(const Gl& gl, const std::vector<GLenum>& formats, std::string_view driver, DriverNotes* notes) {
  if (formats.empty()) return {};
  const std::string name = "canary of " + std::string(driver);
  if (notes != nullptr) {
    if (const auto kept = notes->find(name)) {
      Canary canary = decode(*kept);
      const bool known = std::find(formats.begin(), formats.end(), canary.format) != formats.end();
      if (known && takes(gl, canary)) return canary;
    }
  }
  Canary canary = build(gl);
  if (notes != nullptr && !canary.binary.empty()) notes->keep(name, encode(canary));
  return canary;
}

}  // namespace kiln::opengl
