#include "objects/buffer.hpp"

#include <cstring>

namespace kiln::opengl {
namespace {

constexpr std::uint64_t padding = 64;

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

GlBuffer::GlBuffer(std::shared_ptr<ContextGroup> group, std::shared_ptr<SharedStaging> staging, Transfer transfer,
                   std::uint64_t bytes)
    : group_(std::move(group)), staging_(std::move(staging)), transfer_(transfer), bytes_(bytes) {}

GlBuffer::~GlBuffer() {
  // Deleting unmaps. The closure borrows the group: its thread runs everything posted before it ends.
  group_->execution().post([group = group_.get(), name = name_, texels = texels_]() mutable {
    texels.drop(group->gl());
    group->gl().DeleteBuffers(1, &name);
  });
}

Result<std::unique_ptr<Buffer>> GlBuffer::create(const std::shared_ptr<ContextGroup>& group,
                                                 const std::shared_ptr<SharedStaging>& staging, Transfer transfer,
                                                 const BufferDesc& desc) {
  std::unique_ptr<GlBuffer> buffer(new GlBuffer(group, staging, transfer, desc.bytes));
  Status status = group->execution().call([&] { return buffer->make(desc.usage); });
  if (!status.ok()) return status;
  return std::unique_ptr<Buffer>(std::move(buffer));
}

Status GlBuffer::make(BufferUsage usage) {
  const Gl& gl = group_->gl();
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
    return unavailable(group_->id() + ": " + doing + ": it cannot be mapped");
  }
  return {};
}

Status GlBuffer::in_range(std::string_view doing, std::uint64_t offset, std::size_t bytes) const {
  if (offset <= bytes_ && bytes <= bytes_ - offset) return {};
  return invalid_argument(group_->id() + ": " + std::string(doing) + " " + std::to_string(bytes) + " bytes at offset " +
                          std::to_string(offset) + " of a buffer of " + std::to_string(bytes_) + " bytes");
}

Result<Staging*> GlBuffer::staging() {
  if (staging_->staging == nullptr) {
    auto made = Staging::create(*group_);
    if (!made) return made.error();
    staging_->staging = std::move(made).value();
  }
  return staging_->staging.get();
}

Status GlBuffer::write(std::uint64_t offset, std::span<const std::byte> from) noexcept {
  if (Status status = in_range("writing", offset, from.size()); !status.ok() || from.empty()) return status;
  if (Status lost = group_->alive(); !lost.ok()) return lost;
  if (memory_ != nullptr) {
    std::memcpy(memory_ + offset, from.data(), from.size());
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
}

Status GlBuffer::read(std::uint64_t offset, std::span<std::byte> to) noexcept {
  if (Status status = in_range("reading", offset, to.size()); !status.ok() || to.empty()) return status;
  if (Status lost = group_->alive(); !lost.ok()) return lost;
  if (memory_ != nullptr) {
    std::memcpy(to.data(), memory_ + offset, to.size());
    return {};
  }
  return group_->execution().call([&]() -> Status {
    if (transfer_ == Transfer::staged) {
      auto area = staging();
      return area ? (*area)->read(name_, offset, to) : area.error();
    }
    const Gl& gl = group_->gl();
    gl.BindBuffer(GL_COPY_READ_BUFFER, name_);
    gl.GetBufferSubData(GL_COPY_READ_BUFFER, static_cast<GLintptr>(offset), static_cast<GLsizeiptr>(to.size()),
                        to.data());
    return group_->check("reading a buffer");
  });
}

std::span<std::byte> GlBuffer::mapped() noexcept {
  if (memory_ == nullptr) return {};
  return {memory_, static_cast<std::size_t>(bytes_)};
}

Result<UniqueFd> GlBuffer::export_fd() noexcept {
  return unsupported(group_->id() + ": a buffer cannot be exported as a file descriptor");
}

}  // namespace kiln::opengl
