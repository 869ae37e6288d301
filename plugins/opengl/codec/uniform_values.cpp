#include "codec/uniform_values.hpp"

namespace kiln::opengl {

void set_uniform(const Gl& gl, GLuint program, const PlainUniform& uniform, const std::byte* components) {
  const GLint at = uniform.location;
  const GLsizei n = uniform.count;
  const auto* f = reinterpret_cast<const GLfloat*>(components);
  const auto* d = reinterpret_cast<const GLdouble*>(components);
  const auto* i = reinterpret_cast<const GLint*>(components);
  const auto* u = reinterpret_cast<const GLuint*>(components);
  switch (uniform.type) {
    case GL_FLOAT:
      return gl.ProgramUniform1fv(program, at, n, f);
    case GL_FLOAT_VEC2:
      return gl.ProgramUniform2fv(program, at, n, f);
    case GL_FLOAT_VEC3:
      return gl.ProgramUniform3fv(program, at, n, f);
    case GL_FLOAT_VEC4:
      return gl.ProgramUniform4fv(program, at, n, f);
    case GL_DOUBLE:
      return gl.ProgramUniform1dv(program, at, n, d);
    case GL_DOUBLE_VEC2:
      return gl.ProgramUniform2dv(program, at, n, d);
    case GL_DOUBLE_VEC3:
      return gl.ProgramUniform3dv(program, at, n, d);
    case GL_DOUBLE_VEC4:
      return gl.ProgramUniform4dv(program, at, n, d);
    case GL_INT:
    case GL_BOOL:
      return gl.ProgramUniform1iv(program, at, n, i);
    case GL_INT_VEC2:
    case GL_BOOL_VEC2:
      return gl.ProgramUniform2iv(program, at, n, i);
    case GL_INT_VEC3:
    case GL_BOOL_VEC3:
      return gl.ProgramUniform3iv(program, at, n, i);
    case GL_INT_VEC4:
    case GL_BOOL_VEC4:
      return gl.ProgramUniform4iv(program, at, n, i);
    case GL_UNSIGNED_INT:
      return gl.ProgramUniform1uiv(program, at, n, u);
    case GL_UNSIGNED_INT_VEC2:
      return gl.ProgramUniform2uiv(program, at, n, u);
    case GL_UNSIGNED_INT_VEC3:
      return gl.ProgramUniform3uiv(program, at, n, u);
    case GL_UNSIGNED_INT_VEC4:
      return gl.ProgramUniform4uiv(program, at, n, u);
    case GL_FLOAT_MAT2:
      return gl.ProgramUniformMatrix2fv(program, at, n, GL_FALSE, f);
    case GL_FLOAT_MAT3:
      return gl.ProgramUniformMatrix3fv(program, at, n, GL_FALSE, f);
    case GL_FLOAT_MAT4:
      return gl.ProgramUniformMatrix4fv(program, at, n, GL_FALSE, f);
    case GL_FLOAT_MAT2x3:
      return gl.ProgramUniformMatrix2x3fv(program, at, n, GL_FALSE, f);
    case GL_FLOAT_MAT2x4:
      return gl.ProgramUniformMatrix2x4fv(program, at, n, GL_FALSE, f);
    case GL_FLOAT_MAT3x2:
      return gl.ProgramUniformMatrix3x2fv(program, at, n, GL_FALSE, f);
    case GL_FLOAT_MAT3x4:
      return gl.ProgramUniformMatrix3x4fv(program, at, n, GL_FALSE, f);
    case GL_FLOAT_MAT4x2:
      return gl.ProgramUniformMatrix4x2fv(program, at, n, GL_FALSE, f);
    case GL_FLOAT_MAT4x3:
      return gl.ProgramUniformMatrix4x3fv(program, at, n, GL_FALSE, f);
    case GL_DOUBLE_MAT2:
      return gl.ProgramUniformMatrix2dv(program, at, n, GL_FALSE, d);
    case GL_DOUBLE_MAT3:
      return gl.ProgramUniformMatrix3dv(program, at, n, GL_FALSE, d);
    case GL_DOUBLE_MAT4:
      return gl.ProgramUniformMatrix4dv(program, at, n, GL_FALSE, d);
    case GL_DOUBLE_MAT2x3:
      return gl.ProgramUniformMatrix2x3dv(program, at, n, GL_FALSE, d);
    case GL_DOUBLE_MAT2x4:
      return gl.ProgramUniformMatrix2x4dv(program, at, n, GL_FALSE, d);
    case GL_DOUBLE_MAT3x2:
      return gl.ProgramUniformMatrix3x2dv(program, at, n, GL_FALSE, d);
    case GL_DOUBLE_MAT3x4:
      return gl.ProgramUniformMatrix3x4dv(program, at, n, GL_FALSE, d);
    case GL_DOUBLE_MAT4x2:
      return gl.ProgramUniformMatrix4x2dv(program, at, n, GL_FALSE, d);
    case GL_DOUBLE_MAT4x3:
      return gl.ProgramUniformMatrix4x3dv(program, at, n, GL_FALSE, d);
    default:
      break;
  }
  // GL_ARB_gpu_shader_int64: one function for each number of components.
  const auto* l = reinterpret_cast<const GLint64*>(components);
  const auto* ul = reinterpret_cast<const GLuint64*>(components);
  switch (uniform.type) {
    case 0x140E:
      return gl.ProgramUniform1i64vARB(program, at, n, l);
    case 0x8FE9:
      return gl.ProgramUniform2i64vARB(program, at, n, l);
    case 0x8FEA:
      return gl.ProgramUniform3i64vARB(program, at, n, l);
    case 0x8FEB:
      return gl.ProgramUniform4i64vARB(program, at, n, l);
    case 0x140F:
      return gl.ProgramUniform1ui64vARB(program, at, n, ul);
    case 0x8FF5:
      return gl.ProgramUniform2ui64vARB(program, at, n, ul);
    case 0x8FF6:
      return gl.ProgramUniform3ui64vARB(program, at, n, ul);
    case 0x8FF7:
      return gl.ProgramUniform4ui64vARB(program, at, n, ul);
    default:
      return;
  }
}

}  // namespace kiln::opengl
