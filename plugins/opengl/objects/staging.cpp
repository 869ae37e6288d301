#include "objects/staging.hpp"

#include <algorithm>
#include <cstring>

namespace kiln::opengl {
namespace {

constexpr std::size_t area_bytes = std::size_t{8} << 20;
constexpr std::size_t half_bytes = area_bytes / 2;
constexpr GLuint64 staging_slice_ns = 100'000'000;

void copy(const Gl& gl, GLuint from, std::uint64_t from_offset, GLuint to, std::uint64_t to_offset, std::size_t bytes) {
  gl.BindBuffer(GL_COPY_READ_BUFFER, from);
  gl.BindBuffer(GL_COPY_WRITE_BUFFER, to);
  gl.CopyBufferSubData(GL_COPY_READ_BUFFER, GL_COPY_WRITE_BUFFER, static_cast<GLintptr>(from_offset),
                       static_cast<GLintptr>(to_offset), static_cast<GLsizeiptr>(bytes));
}

}  // namespace

Result<std::unique_ptr<Staging>> Staging::create(ContextGroup& group) {
  std::unique_ptr<Staging> staging(new Staging(group));
  if (Status status = staging->make(staging->upload_, GL_MAP_WRITE_BIT); !status.ok()) return status;
  if (Status status = staging->make(staging->readback_, GL_MAP_READ_BIT); !status.ok()) return status;
  return staging;
}

Status Staging::make(Area& area, GLbitfield access) {
  const Gl& gl = group_.gl();
  const GLbitfield flags = access | GL_MAP_PERSISTENT_BIT | GL_MAP_COHERENT_BIT;
  gl.GenBuffers(1, &area.name);
  gl.BindBuffer(GL_COPY_WRITE_BUFFER, area.name);
  gl.BufferStorage(GL_COPY_WRITE_BUFFER, area_bytes, nullptr, flags);
  area.memory = static_cast<std::byte*>(gl.MapBufferRange(GL_COPY_WRITE_BUFFER, 0, area_bytes, flags));
  if (Status status = group_.check("making a staging buffer"); !status.ok()) return status;
  return area.memory != nullptr ? ok_status() : unavailable(group_.id() + ": a staging buffer cannot be mapped");
}

Staging::~Staging() {
  const Gl& gl = group_.gl();
  for (const GLsync fence : upload_fences_) {
    if (fence != nullptr) gl.DeleteSync(fence);
  }
  const GLuint names[] = {upload_.name, readback_.name};
  gl.DeleteBuffers(2, names);  // unmaps too
}

Status Staging::wait(GLsync& fence) {
  const Gl& gl = group_.gl();
  while (fence != nullptr) {
    const GLenum answer = gl.ClientWaitSync(fence, GL_SYNC_FLUSH_COMMANDS_BIT, staging_slice_ns);
    if (answer == GL_TIMEOUT_EXPIRED) {
      if (Status status = group_.check("waiting for a transfer"); !status.ok()) return status;
      continue;
    }
    gl.DeleteSync(fence);
    fence = nullptr;
    if (answer == GL_WAIT_FAILED) {
      Status status = group_.check("waiting for a transfer");
      return status.ok() ? internal_error(group_.id() + ": glClientWaitSync failed without an error") : status;
    }
  }
  return {};
}

Status Staging::write(GLuint buffer, std::uint64_t offset, std::span<const std::byte> from) {
  const Gl& gl = group_.gl();
  while (!from.empty()) {
    const std::size_t bytes = std::min(from.size(), half_bytes);
    GLsync& fence = upload_fences_[half_];
    if (Status status = wait(fence); !status.ok()) return status;
    const std::size_t at = half_ * half_bytes;
    std::memcpy(upload_.memory + at, from.data(), bytes);
    copy(gl, upload_.name, at, buffer, offset, bytes);
    fence = gl.FenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
    gl.Flush();
    half_ = 1 - half_;
    from = from.subspan(bytes);
    offset += bytes;
  }
  return group_.check("writing a buffer");
}

Status Staging::read(GLuint buffer, std::uint64_t offset, std::span<std::byte> to) {
  const Gl& gl = group_.gl();
  while (!to.empty()) {
    const std::size_t bytes = std::min(to.size(), area_bytes);
    copy(gl, buffer, offset, readback_.name, 0, bytes);
    gl.MemoryBarrier(GL_CLIENT_MAPPED_BUFFER_BARRIER_BIT);
    GLsync fence = gl.FenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
    gl.Flush();
    if (Status status = wait(fence); !status.ok()) {
      if (fence != nullptr) gl.DeleteSync(fence);
      return status;
    }
    std::memcpy(to.data(), readback_.memory, bytes);
    to = to.subspan(bytes);
    offset += bytes;
  }
  return group_.check("reading a buffer");
}

}  // namespace kiln::opengl
