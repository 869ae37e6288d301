// The interface of a linked program: what OpenGL reports of it, and what only its text says.
//
// Thread-safety: reflect() on the context's thread; the others are pure. Ownership: values.
#pragma once

#include "codec/context.hpp"

#include <kiln/program_interface.hpp>
#include <kiln/uniform_values.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::opengl {

// A uniform outside a block, in the order in which ProgramInterface lists them.
struct PlainUniform {
  GLint location = -1;
  GLenum type = GL_NONE;
  GLsizei count = 1;               // elements of an array
  std::vector<std::byte> initial;  // its value after linking, as the type's components lie in memory
  // Of a member of a uniform block: the block's index, and its position. -1: outside blocks.
  GLint block = -1;
  UniformPlace place{};
};

// An image or sampler: where its unit is set, and what is bound there.
struct TextureUniform {
  GLint location = -1;
  GLenum target = GL_NONE;  // GL_TEXTURE_2D, …
  GLuint unit = 0;          // of a device's program; in an adopted context the application chooses it
};

struct Reflection {
  std::vector<ProgramResource> resources;  // access and has_default are not set: OpenGL does not report them
  std::vector<PlainUniform> uniforms;      // ProgramResource::handle of a uniform is its index here
  std::vector<TextureUniform> textures;    // likewise of an image or sampler
  std::vector<std::string> extensions;     // of the driver, which the text names: the compiler defines their macros
};

// Storage blocks, uniforms, uniform blocks, images, samplers and atomic counters that the program uses.
Reflection reflect(const Gl& gl, GLuint program, std::string_view text);

// With what the text of the source says: readonly, writeonly, initialisers, and declarations that are not used.
ProgramInterface complete(const Reflection& reflection, const KernelSource& source);

}  // namespace kiln::opengl
