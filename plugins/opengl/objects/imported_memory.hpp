// import_memory: a buffer whose memory lies behind a descriptor that another device or API exported (a dma-buf).
//
// Thread-safety: on a context's thread. Ownership: the caller deletes both names, the buffer's first; the descriptor
// stays the caller's, GL gets a duplicate.
#pragma once

#include "gl/context_group.hpp"

#include <kiln/status.hpp>

#include <cstdint>

namespace kiln::opengl {

struct ImportedMemory {
  GLuint memory = 0;
  GLuint buffer = 0;
};

// REQUIRES: the context has GL_EXT_memory_object_fd. invalid_argument: the memory has fewer bytes, with both numbers.
// unavailable: the driver does not take it.
Result<ImportedMemory> import_memory(ContextGroup& group, int fd, std::uint64_t bytes);

}  // namespace kiln::opengl
