#include "buffer.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include <kiln/buffer.hpp>

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

namespace {

constexpr std::uint64_t padding = 64;
constexpr std::uint64_t most_kept_bytes = 64 << 10;  // of what was written: more than the uniforms of a program take

GLenum usage_hint(BufferUsage usage) noexcept {
  switch (usage) {
    case BufferUsage::upload:
      return GL_DYNAMIC_DRAW;
    case BufferUsage::readback:
      return GL_DYNAMIC_READ;
    case BufferUsage::constant:
      return GL_STATIC_DRAW;
    default:
      return GL_DYNAMIC_COPY;
  }
}

}  // namespace

void copy_in(const Gl& gl, Shadow& shadow, GLuint buffer, GLsizeiptr bytes) {
  if (!shadow.newer.exchange(false, std::memory_order_acquire)) return;
  gl.BindBuffer(GL_COPY_READ_BUFFER, shadow.name);
  gl.BindBuffer(GL_COPY_WRITE_BUFFER, buffer);
  gl.CopyBufferSubData(GL_COPY_READ_BUFFER, GL_COPY_WRITE_BUFFER, 0, 0, bytes);
}

void copy_back(const Gl& gl, const Shadow& shadow, GLuint buffer, GLsizeiptr bytes) {
  gl.BindBuffer(GL_COPY_READ_BUFFER, buffer);
  gl.BindBuffer(GL_COPY_WRITE_BUFFER, shadow.name);
  gl.CopyBufferSubData(GL_COPY_READ_BUFFER, GL_COPY_WRITE_BUFFER, 0, 0, bytes);
}

GlBuffer::GlBuffer(std::shared_ptr<ContextGroup> group, std::shared_ptr<SharedStaging> staging, Transfer transfer,
                   std::uint64_t bytes)
    : group_(std::move(group)), staging_(std::move(staging)), transfer_(transfer), bytes_(bytes) {}

GlBuffer::~GlBuffer() {
  try {
    // Deleting unmaps. The closure borrows the group: its thread runs everything posted before it ends.
    const GLuint shadow = shadow_ != nullptr ? shadow_->name : 0;  // 0 is ignored
    group_->execution().post([group = group_.get(), name = is_part_ ? 0 : name_, shadow, imported = imported_,
                              texels = texels_, pixels = std::move(pixels_)]() mutable {
      texels.drop(group->gl());
      for (PixelTexture& texture : pixels) texture.drop(group->gl());
      const GLuint names[] = {name, shadow};
      group->gl().DeleteBuffers(2, names);
      if (imported != 0) group->gl().DeleteMemoryObjectsEXT(1, &imported);
    });
  } catch (...) {  // out of memory: the names stay until the context goes
  }
}

Result<std::unique_ptr<Buffer>> GlBuffer::create(const std::shared_ptr<ContextGroup>& group,
                                                 const std::shared_ptr<SharedStaging>& staging, Transfer transfer,
                                                 const BufferDesc& desc) {
  if (desc.part_of != nullptr) {
    const auto& whole = static_cast<const GlBuffer&>(*desc.part_of);
    const bool fits = whole.group_ == group && whole.shadow_ == nullptr && desc.bytes <= whole.bytes_;
    if (!fits) {
      return invalid_argument(group->id() + ": part_of is a buffer of " + std::to_string(whole.bytes_) +
                              " bytes, expected a storage buffer of this device with at least " +
                              std::to_string(desc.bytes) + " bytes");
    }
    std::unique_ptr<GlBuffer> part(new GlBuffer(group, staging, whole.transfer_, desc.bytes));
    part->is_part_ = true;
    part->name_ = whole.name_;
    part->memory_ = whole.memory_;
    return std::unique_ptr<Buffer>(std::move(part));
  }
  // Memory that another device made is reached through a copy: its mapping is that device's business.
  const bool imports = desc.import_fd >= 0;
  std::unique_ptr<GlBuffer> buffer(new GlBuffer(group, staging, imports ? Transfer::staged : transfer, desc.bytes));
  Status status =
      group->execution().call([&] { return imports ? buffer->import(desc.import_fd) : buffer->make(desc.usage); });
  if (!status.ok()) return status;
  return std::unique_ptr<Buffer>(std::move(buffer));
}

Status GlBuffer::make(BufferUsage usage) {
  const Gl& gl = group_->gl();
  const bool keeps = usage == BufferUsage::upload && transfer_ != Transfer::mapped && bytes_ <= most_kept_bytes;
  if (keeps) written_.resize(static_cast<std::size_t>(bytes_));
  const auto store = static_cast<GLsizeiptr>((bytes_ + 2 * padding - 1) / padding * padding);
  gl.GenBuffers(1, &name_);
  gl.BindBuffer(GL_COPY_WRITE_BUFFER, name_);
  if (transfer_ == Transfer::mapped) {
    // One buffer serves every usage, and a caller may read back what it uploaded: both ways, unlike the staging
    // buffers.
    constexpr GLbitfield flags = GL_MAP_READ_BIT | GL_MAP_WRITE_BIT | GL_MAP_PERSISTENT_BIT | GL_MAP_COHERENT_BIT;
    gl.BufferStorage(GL_COPY_WRITE_BUFFER, store, nullptr, flags);
    memory_ = static_cast<std::byte*>(gl.MapBufferRange(GL_COPY_WRITE_BUFFER, 0, store, flags));
  } else if (transfer_ == Transfer::staged) {
    gl.BufferStorage(GL_COPY_WRITE_BUFFER, store, nullptr, 0);
  } else {
    gl.BufferData(GL_COPY_WRITE_BUFFER, store, nullptr, usage_hint(usage));
  }
  const std::string doing = "making a buffer of " + std::to_string(bytes_) + " bytes";
  if (Status status = group_->check(doing); !status.ok()) return status;
  if (transfer_ == Transfer::mapped && memory_ == nullptr) {
    return unavailable(group_->id() + ": " + doing + ": the buffer cannot be mapped");
  }
  const bool each_job = usage == BufferUsage::upload || usage == BufferUsage::readback;
  return transfer_ == Transfer::staged && each_job ? make_shadow(usage, store) : ok_status();
}

Status GlBuffer::import(int fd) {
  auto imported = import_memory(*group_, fd, bytes_);
  if (!imported) return imported.error();
  imported_ = imported->memory;
  name_ = imported->buffer;
  return {};
}

// The two usages have flags of their own: what is only written may lie in memory that is slow to read.
Status GlBuffer::make_shadow(BufferUsage usage, GLsizeiptr store) {
  const Gl& gl = group_->gl();
  const bool back = usage == BufferUsage::readback;
  const GLbitfield access =
      GL_MAP_WRITE_BIT | GL_MAP_PERSISTENT_BIT | GL_MAP_COHERENT_BIT | (back ? GL_MAP_READ_BIT : 0u);
  shadow_ = std::make_unique<Shadow>();
  shadow_->comes_back = back;
  gl.GenBuffers(1, &shadow_->name);
  gl.BindBuffer(GL_COPY_WRITE_BUFFER, shadow_->name);
  gl.BufferStorage(GL_COPY_WRITE_BUFFER, store, nullptr, access | (back ? GL_CLIENT_STORAGE_BIT : 0u));
  shadow_->memory = static_cast<std::byte*>(gl.MapBufferRange(GL_COPY_WRITE_BUFFER, 0, store, access));
  const std::string doing = "making the staging memory of a buffer of " + std::to_string(bytes_) + " bytes";
  if (Status status = group_->check(doing); !status.ok()) return status;
  if (shadow_->memory == nullptr) return unavailable(group_->id() + ": " + doing + ": the memory cannot be mapped");
  return {};
}

Status GlBuffer::in_range(std::string_view doing, std::uint64_t offset, std::size_t bytes) const {
  if (offset <= bytes_ && bytes <= bytes_ - offset) return {};
  return invalid_argument(group_->id() + ": " + std::string(doing) + " " + std::to_string(bytes) + " bytes at offset " +
                          std::to_string(offset) + " exceeds the buffer of " + std::to_string(bytes_) + " bytes");
}

Result<Staging*> GlBuffer::staging() {
  if (staging_->staging == nullptr) {
    auto made = Staging::create(*group_);
    if (!made) return made.error();
    staging_->staging = std::move(made).value();
  }
  return staging_->staging.get();
}

Status GlBuffer::write(std::uint64_t offset, std::span<const std::byte> from) noexcept try {
  if (Status status = in_range("writing", offset, from.size()); !status.ok() || from.empty()) return status;
  if (Status lost = group_->alive(); !lost.ok()) return lost;
  if (memory_ != nullptr) {
    std::memcpy(memory_ + offset, from.data(), from.size());
    return {};
  }
  if (!written_.empty()) std::memcpy(written_.data() + offset, from.data(), from.size());
  if (shadow_ != nullptr) {
    std::memcpy(shadow_->memory + offset, from.data(), from.size());
    shadow_->newer.store(true, std::memory_order_release);
    return {};
  }
  return group_->execution().call([&]() -> Status {
    if (transfer_ == Transfer::staged) {
      auto area = staging();
      return area ? (*area)->write(name_, offset, from) : area.error();
    }
    const Gl& gl = group_->gl();
    gl.BindBuffer(GL_COPY_WRITE_BUFFER, name_);
    gl.BufferSubData(GL_COPY_WRITE_BUFFER, static_cast<GLintptr>(offset), static_cast<GLsizeiptr>(from.size()),
                     from.data());
    return group_->check("writing a buffer");
  });
} catch (...) {
  return caught();
}

Status GlBuffer::read(std::uint64_t offset, std::span<std::byte> to) noexcept try {
  if (Status status = in_range("reading", offset, to.size()); !status.ok() || to.empty()) return status;
  if (Status lost = group_->alive(); !lost.ok()) return lost;
  if (memory_ != nullptr) {
    std::memcpy(to.data(), memory_ + offset, to.size());
    return {};
  }
  if (shadow_ != nullptr && shadow_->comes_back) {
    std::memcpy(to.data(), shadow_->memory + offset, to.size());
    return {};
  }
  return group_->execution().call([&]() -> Status {
    if (transfer_ == Transfer::staged) {
      if (shadow_ != nullptr) copy_in(group_->gl(), *shadow_, name_, static_cast<GLsizeiptr>(bytes_));
      auto area = staging();
      return area ? (*area)->read(name_, offset, to) : area.error();
    }
    const Gl& gl = group_->gl();
    gl.BindBuffer(GL_COPY_READ_BUFFER, name_);
    gl.GetBufferSubData(GL_COPY_READ_BUFFER, static_cast<GLintptr>(offset), static_cast<GLsizeiptr>(to.size()),
                        to.data());
    return group_->check("reading a buffer");
  });
} catch (...) {
  return caught();
}

std::span<const std::byte> GlBuffer::written() const noexcept {
  if (memory_ == nullptr) return written_;
  return {memory_, static_cast<std::size_t>(bytes_)};
}

std::span<std::byte> GlBuffer::mapped() noexcept {
  if (memory_ == nullptr) return {};
  return {memory_, static_cast<std::size_t>(bytes_)};
}

Result<UniqueFd> GlBuffer::export_fd() noexcept {
  return unsupported(group_->id() + ": a buffer cannot be exported as a file descriptor");
}

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
    return invalid_argument(doing + ": the imported memory has " + std::to_string(there) + " bytes");
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
