// The textures behind images, samplers and views of buffers.
//
// PixelTexture: the texture of an image or sampler of a user's kernel, copied from and to a buffer.
//
// Thread-safety: on the dispatching context's thread only. Ownership: drop() deletes the texture; a copy names the same
// texture; the buffer outlives it.
#pragma once

#include <cstdint>

#include <kiln/kernel.hpp>
#include <kiln/program_interface.hpp>
#include <kiln/status.hpp>

#include "codec/context.hpp"

namespace kiln::opengl {

class PixelTexture {
 public:
  // Makes the texture, unless it has this form, and copies the buffer's texels into it. A texture of target
  // GL_TEXTURE_BUFFER is the buffer itself. unsupported: the device has no texture of this size.
  Status fill(const Gl& gl, GLenum target, const TextureSource& form, GLuint buffer, GLsizeiptr bytes);
  // Copies the texels back into the buffer. REQUIRES: filled; a barrier after the writes.
  void read_back(const Gl& gl, GLuint buffer) const;

  void bind_image(const Gl& gl, GLuint unit) const;
  void bind_sampler(const Gl& gl, GLuint unit) const;
  void unbind(const Gl& gl, GLuint image_unit, GLuint texture_unit) const;
  void drop(const Gl& gl);

 private:
  Status create(const Gl& gl);

  GLuint name_ = 0;
  GLenum target_ = GL_NONE;
  TextureSource form_;
};

// TexelView: a buffer seen as an array of four-float texels, through the texture unit or the image unit.
//
// Thread-safety: on the dispatching context's thread only. Ownership: drop() deletes the texture; the buffer outlives
// it. A copy names the same texture. The view reaches to the end of the last texel that the bytes touch, which lies
// within the buffer's padding.
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
