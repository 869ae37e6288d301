// The interface of a linked program: what OpenGL reports of it, and what only its text says.
//
// The driver's answers cost a program as much time as loading it. They depend on the driver and the source alone, as
// its binary does, so they are stored with that. Thread-safety: reflect() on the context's thread; the others are pure.
// Ownership: values.
#pragma once

#include "codec/context.hpp"

#include <kiln/program_interface.hpp>
#include <kiln/uniform_values.hpp>

#include <cstddef>
#include <optional>
#include <span>
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
  ProgramInterface interface;
  std::vector<PlainUniform> uniforms;    // ProgramResource::handle of a uniform is its index here
  std::vector<TextureUniform> textures;  // likewise of an image or sampler
};

// Storage blocks, uniforms, uniform blocks, images, samplers and atomic counters that the program uses, as the driver
// reports them; and what only the text of the source says: readonly, writeonly, initialisers, and declarations that are
// not used.
Reflection reflect(const Gl& gl, GLuint program, const KernelSource& source);

// A reflection as bytes, for a build of the driver that is the same, and back. nullopt: not what append() writes.
void append(const Reflection& reflection, std::vector<std::byte>& bytes);
std::optional<Reflection> read_reflection(std::span<const std::byte> bytes);

}  // namespace kiln::opengl
