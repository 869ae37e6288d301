// The values of uniforms: from those of a job to those of OpenGL's types.
//
// Thread-safety: converted() is pure; set_uniform() on the context's thread. Ownership: values.
#pragma once

#include "codec/reflection.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace kiln::opengl {

// Converts the values of a uniform, 8 bytes each (UserKernelSpec::Uniform), to components of its OpenGL type;
// matrices become column by column. invalid_argument: a value that the type cannot hold.
Result<std::vector<std::byte>> converted(const ProgramResource& resource, const std::byte* values,
                                         UserKernelSpec::Uniform::Type given);

// Sets a uniform of the program. REQUIRES: as many components as the uniform has.
void set_uniform(const Gl& gl, GLuint program, const PlainUniform& uniform, const std::byte* components);

// Stores a member's components in the bytes of its uniform block. REQUIRES: as many components as the member has.
void place_in_block(const ProgramResource& resource, const PlainUniform& member, std::span<const std::byte> components,
                    std::vector<std::byte>& block);

}  // namespace kiln::opengl
