// What one would write without Kiln: OpenGL that compiles kernels from source, with whatever cache the driver has, or
// that keeps program binaries in files of its own.
//
//   start_plain FOLDER COUNT [BINARIES]      runs FOLDER/k0.comp, k1.comp, … on FOLDER/x.npy; BINARIES: where it keeps
//   them
#include "start_context.hpp"

#include <unistd.h>

#include <cstring>

using namespace kiln::bench;

namespace {

GLuint built(const GladGLContext& gl, const std::string& path, bool keep) {
  const std::string text = contents(path);
  const char* const pointer = text.c_str();
  const GLuint shader = gl.CreateShader(GL_COMPUTE_SHADER), program = gl.CreateProgram();
  gl.ShaderSource(shader, 1, &pointer, nullptr);
  gl.CompileShader(shader);
  gl.ProgramParameteri(program, GL_PROGRAM_BINARY_RETRIEVABLE_HINT, keep ? GL_TRUE : GL_FALSE);
  gl.AttachShader(program, shader);
  gl.LinkProgram(program);
  GLint linked = GL_FALSE;
  gl.GetProgramiv(program, GL_LINK_STATUS, &linked);
  if (linked != GL_TRUE) fail(path + " does not link");
  gl.DeleteShader(shader);
  return program;
}

// A kept binary: its format, then its bytes. 0: there is none that the driver takes.
GLuint loaded(const GladGLContext& gl, const std::string& path) {
  const std::string binary = contents(path);
  GLenum format = 0;
  if (binary.size() <= sizeof format) return 0;
  std::memcpy(&format, binary.data(), sizeof format);
  const GLuint program = gl.CreateProgram();
  gl.ProgramBinary(program, format, binary.data() + sizeof format, static_cast<GLsizei>(binary.size() - sizeof format));
  GLint linked = GL_FALSE;
  gl.GetProgramiv(program, GL_LINK_STATUS, &linked);
  if (linked == GL_TRUE) return program;
  gl.DeleteProgram(program);
  return 0;
}

void keep(const GladGLContext& gl, GLuint program, const std::string& path) {
  GLint length = 0;
  gl.GetProgramiv(program, GL_PROGRAM_BINARY_LENGTH, &length);
  GLenum format = 0;
  std::string binary(sizeof format + static_cast<std::size_t>(length), '\0');
  gl.GetProgramBinary(program, length, &length, &format, binary.data() + sizeof format);
  std::memcpy(binary.data(), &format, sizeof format);
  std::ofstream(path, std::ios::binary) << binary;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) fail("usage: start_plain FOLDER COUNT [BINARIES]");
  const std::string folder = argv[1], binaries = argc > 3 ? argv[3] : "";
  const GladGLContext gl = own_context();
  for (int i = 0; i < std::atoi(argv[2]); ++i) {
    const std::string number = std::to_string(i), file = binaries + "/" + number;
    GLuint program = binaries.empty() ? 0 : loaded(gl, file);
    if (program == 0) {
      program = built(gl, folder + "/k" + number + ".comp", !binaries.empty());
      if (!binaries.empty()) keep(gl, program, file);
    }
    dispatch(gl, program, folder, "plain" + number + ".npy");
  }
  std::fflush(nullptr);
  _exit(0);
}
