// The codec of an opened device: what codec/program_codec makes in one of its contexts becomes a program of its share
// group, usable in the others.
//
// Thread-safety: each function runs on a context's thread of the group. Ownership: programs are the caller's.
#pragma once

#include "codec/program_codec.hpp"
#include "gl/facts.hpp"
#include "objects/program.hpp"

#include <kiln/measurement.hpp>

#include <memory>
#include <string>
#include <vector>

namespace kiln::opengl {

Result<std::unique_ptr<Program>> build_program(const std::shared_ptr<ContextGroup>& group, const KernelSource& source,
                                               const std::string& text, std::atomic<std::uint64_t>& counter);

Result<std::unique_ptr<Program>> load_program(const std::shared_ptr<ContextGroup>& group, const KernelSource& source,
                                              const ProgramBinary& binary, const std::vector<GLenum>& formats,
                                              std::atomic<std::uint64_t>& counter);

Result<ProgramBinary> serialize_program(ContextGroup& group, const GlProgram& program);

}  // namespace kiln::opengl
