// Sets uniforms of a program.
//
// Thread-safety: on the context's thread. Ownership: nothing is retained.
#pragma once

#include "codec/reflection.hpp"

#include <cstddef>

namespace kiln::opengl {

// REQUIRES: as many components as the uniform has (kiln/uniform_values.hpp).
void set_uniform(const Gl& gl, GLuint program, const PlainUniform& uniform, const std::byte* components);

}  // namespace kiln::opengl
