// PixelTexture: the texture of an image or sampler of a user's kernel, copied from and to a buffer.
//
// Thread-safety: on the dispatching context's thread only. Ownership: drop() deletes the texture; a copy names the same
// texture; the buffer outlives it.
#pragma once

#include <cstdint>

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

}  // namespace kiln::opengl
