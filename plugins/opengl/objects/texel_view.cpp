#include "objects/texel_view.hpp"

namespace kiln::opengl {
namespace {

constexpr GLsizeiptr texel_bytes = 16;

}  // namespace

void TexelView::bind(const Gl& gl, GLuint unit, View view, GLuint buffer, GLsizeiptr bytes) {
  gl.ActiveTexture(GL_TEXTURE0 + unit);
  if (name_ == 0) {
    gl.GenTextures(1, &name_);
    gl.BindTexture(GL_TEXTURE_BUFFER, name_);
    const GLsizeiptr whole = (bytes + texel_bytes - 1) / texel_bytes * texel_bytes;
    gl.TexBufferRange(GL_TEXTURE_BUFFER, GL_RGBA32F, buffer, 0, whole);
  } else {
    gl.BindTexture(GL_TEXTURE_BUFFER, name_);
  }
  if (view == View::image) gl.BindImageTexture(unit, name_, 0, GL_FALSE, 0, GL_READ_ONLY, GL_RGBA32F);
}

void TexelView::unbind(const Gl& gl, GLuint unit, View view) {
  if (view != View::texels && view != View::image) return;
  gl.ActiveTexture(GL_TEXTURE0 + unit);
  gl.BindTexture(GL_TEXTURE_BUFFER, 0);
  if (view == View::image) gl.BindImageTexture(unit, 0, 0, GL_FALSE, 0, GL_READ_ONLY, GL_RGBA32F);
}

void TexelView::drop(const Gl& gl) {
  if (name_ != 0) gl.DeleteTextures(1, &name_);
  name_ = 0;
}

}  // namespace kiln::opengl
