#include "objects/imported_memory.hpp"

#include <kiln/buffer.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace kiln::opengl {
namespace {

// What it holds, where its kind of descriptor tells; else what is asked for.
std::uint64_t bytes_behind(int fd, std::uint64_t asked) {
  const off_t end = lseek(fd, 0, SEEK_END);
  return end < 0 ? asked : static_cast<std::uint64_t>(end);
}

}  // namespace

Result<ImportedMemory> import_memory(ContextGroup& group, int fd, std::uint64_t bytes) {
  const std::string doing = group.id() + ": importing a buffer of " + std::to_string(bytes) + " bytes";
  const std::uint64_t there = bytes_behind(fd, bytes);
  if (there < bytes) {
    return invalid_argument(doing + ": the memory behind the descriptor has " + std::to_string(there));
  }
  UniqueFd own(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!own) return invalid_argument(doing + ": descriptor " + std::to_string(fd) + ": " + std::strerror(errno));

  const Gl& gl = group.gl();
  ImportedMemory made;
  gl.CreateMemoryObjectsEXT(1, &made.memory);
  gl.ImportMemoryFdEXT(made.memory, there, GL_HANDLE_TYPE_OPAQUE_FD_EXT, own.release());  // takes it over
  gl.GenBuffers(1, &made.buffer);
  gl.BindBuffer(GL_COPY_WRITE_BUFFER, made.buffer);
  gl.BufferStorageMemEXT(GL_COPY_WRITE_BUFFER, static_cast<GLsizeiptr>(bytes), made.memory, 0);
  const Status status = group.check("importing a buffer of " + std::to_string(bytes) + " bytes");
  if (status.ok()) return made;
  gl.DeleteBuffers(1, &made.buffer);
  gl.DeleteMemoryObjectsEXT(1, &made.memory);
  return status.code == StatusCode::device_lost ? status : unavailable(status.message);
}

}  // namespace kiln::opengl
