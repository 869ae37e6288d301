// TexelView: a buffer seen as an array of four-float texels, through the texture unit or the image unit.
//
// Thread-safety: on the dispatching context's thread only. Ownership: drop() deletes the texture; the buffer outlives
// it. A copy names the same texture. The view reaches to the end of the last texel that the bytes touch, which lies
// within the buffer's padding.
#pragma once

#include "gl/gl_error.hpp"

#include <kiln/kernel.hpp>

namespace kiln::opengl {

class TexelView {
 public:
  // The texture is made at its first use. REQUIRES: `view` is texels or image; always the same buffer.
  void bind(const Gl& gl, GLuint unit, View view, GLuint buffer, GLsizeiptr bytes);
  void drop(const Gl& gl);
  // Leaves the unit empty. Nothing for a view that takes no unit.
  static void unbind(const Gl& gl, GLuint unit, View view);

 private:
  GLuint name_ = 0;
};

}  // namespace kiln::opengl
