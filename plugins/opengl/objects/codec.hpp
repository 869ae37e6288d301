// The codec of an OpenGL device: GLSL or a driver's binary to a program, and a program to a binary.
//
// Thread-safety: each function runs on a context's thread of the group. Ownership: programs are the caller's.
#pragma once

#include "gl/facts.hpp"
#include "objects/program.hpp"

#include <kiln/measurement.hpp>

#include <memory>
#include <string>
#include <vector>

namespace kiln::opengl {

// text: assembled from source. The error of a failed build is invalid_argument and holds the compiler's (or linker's)
// whole log. The counter is bumped at the call into the compiler.
Result<std::unique_ptr<Program>> build_program(const std::shared_ptr<ContextGroup>& group, const KernelSource& source,
                                               const std::string& text, std::atomic<std::uint64_t>& counter);

// "gl:875f".
std::string format_tag(GLenum format);

// unsupported: the format is none of `formats`. corrupt: the driver refused the bytes. LINK_STATUS is read straight
// after glProgramBinary; linking again would throw the loaded program away.
Result<std::unique_ptr<Program>> load_program(const std::shared_ptr<ContextGroup>& group, const KernelSource& source,
                                              const ProgramBinary& binary, const std::vector<GLenum>& formats,
                                              std::atomic<std::uint64_t>& counter);

// unsupported where the driver answers no bytes for it.
Result<ProgramBinary> serialize_program(ContextGroup& group, const GlProgram& program);

}  // namespace kiln::opengl
