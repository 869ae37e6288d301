#include "objects/dispatch_nothing.hpp"

namespace kiln::opengl {

void dispatch_nothing(const Gl& gl, GLuint program) {
  constexpr GLuint no_workgroups[] = {0, 0, 0};
  GLuint buffer = 0;
  gl.GenBuffers(1, &buffer);
  gl.BindBuffer(GL_DISPATCH_INDIRECT_BUFFER, buffer);
  gl.BufferData(GL_DISPATCH_INDIRECT_BUFFER, sizeof no_workgroups, no_workgroups, GL_STATIC_DRAW);
  gl.UseProgram(program);
  gl.DispatchComputeIndirect(0);
  gl.Finish();
  gl.UseProgram(0);
  gl.BindBuffer(GL_DISPATCH_INDIRECT_BUFFER, 0);
  gl.DeleteBuffers(1, &buffer);
}

}  // namespace kiln::opengl
