// match_texture: the texture for an image or sampler of a program, from the tensor that a job provides.
//
// Thread-safety: pure. Ownership: values.
#pragma once

#include <kiln/program_interface.hpp>

namespace kiln {

// The size comes from the tensor's shape, the format from the program, the job or the tensor. invalid_argument and
// unsupported do not name the resource: shape, format or channels do not fit, or elements would be lost.
Result<TextureSource> match_texture(const ProgramResource& resource, const UserKernelSpec::Binding& given);

}  // namespace kiln
