// Staging: two persistently mapped buffers through which the host's bytes reach memory of the device's own, and back.
//
// Thread-safety: on the dispatching context's thread only. Ownership: shared by the device and its buffers; destroyed
// there. The two have flags of their own: one is only written by the host, the other only read.
#pragma once

#include "codec/context.hpp"
#include "context_group.hpp"
#include "texture.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <kiln/buffer.hpp>
#include <kiln/kernel.hpp>
#include <kiln/status.hpp>

namespace kiln::opengl {

class Staging {
 public:
  // REQUIRES: buffer storage. Made at the first transfer.
  static Result<std::unique_ptr<Staging>> create(ContextGroup& group);
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging();

  // Returns once the bytes are in the staging memory; what follows on the context sees them in the buffer.
  Status write(GLuint buffer, std::uint64_t offset, std::span<const std::byte> from);
  // Waits for everything before it on the context.
  Status read(GLuint buffer, std::uint64_t offset, std::span<std::byte> to);

 private:
  explicit Staging(ContextGroup& group) : group_(group) {}
  Status wait(GLsync& fence);

  struct Area {
    GLuint name = 0;
    std::byte* memory = nullptr;
  };
  Status make(Area& area, GLbitfield access);

  ContextGroup& group_;
  Area upload_;  // two halves, so that one is filled while the other is copied
  Area readback_;
  std::array<GLsync, 2> upload_fences_{};  // of the copy that last read each half
  std::size_t half_ = 0;
};

// Buffers of a device, and memory imported from other APIs.

// GlBuffer: a shader storage buffer, and the way the host's bytes take to it.
//
// Thread-safety: any thread; what needs the context is marshalled. Ownership: keeps the share group alive; dies before
// its device. The store is padded to 64 bytes beyond what is bound, so that a robust vector access at the end stays
// inside.

// Measured on llvmpipe (Mesa 22.3.6, two cores, medians, microseconds for write / read): 4 MiB mapped 105 / 108, copied
// 168 / 165, staged 440 / 380; 64 bytes 0.03 / 0.03, 50 / 50, 25 / 25, where the last two pay for a closure on the
// context's thread. So a device that computes in host memory usually maps. Where memory is the device's own, a kernel
// would reach a mapping over the bus at every access: there the bytes usually are staged. Which it is, is measured
// (device.hpp). What a slot uploads or reads back for each
// job has a staging area of its own (Shadow), so the host fills and empties it from any thread while another job is on
// the device, and the device copies in the order of its queue.
enum class Transfer : std::uint8_t {
  invalid = 0,
  mapped,  // the storage buffer itself is mapped for good: plain memory for both sides
  staged,  // through persistent mappings: a Shadow for upload and readback, Staging for the rest
  copied,  // glBufferSubData and glGetBufferSubData: there is no buffer storage, or the user asked for it
};

// Made at the first transfer, on the context's thread; destroyed there.
struct SharedStaging {
  std::unique_ptr<Staging> staging;
};

// The host's side of a buffer that lies in the device's own memory, mapped for good. The queue copies it in before a
// dispatch that binds the buffer, and back after it where the usage is readback.
struct Shadow {
  GLuint name = 0;
  std::byte* memory = nullptr;
  bool comes_back = false;
  std::atomic<bool> newer{false};  // the host has written since it was copied in
};

// On the context's thread. copy_in does nothing where the device has what the host wrote last.
void copy_in(const Gl& gl, Shadow& shadow, GLuint buffer, GLsizeiptr bytes);
void copy_back(const Gl& gl, const Shadow& shadow, GLuint buffer, GLsizeiptr bytes);

class GlBuffer final : public Buffer {
 public:
  // REQUIRES: desc is checked: 0 < bytes, a usage, no host memory; a descriptor only where the device shares memory.
  static Result<std::unique_ptr<Buffer>> create(const std::shared_ptr<ContextGroup>& group,
                                                const std::shared_ptr<SharedStaging>& staging, Transfer transfer,
                                                const BufferDesc& desc);
  ~GlBuffer() override;

  std::uint64_t bytes() const noexcept override { return bytes_; }
  Status write(std::uint64_t offset, std::span<const std::byte> from) noexcept override;
  Status read(std::uint64_t offset, std::span<std::byte> to) noexcept override;
  std::span<std::byte> mapped() noexcept override;
  Result<UniqueFd> export_fd() noexcept override;

  GLuint name() const noexcept { return name_; }
  TexelView& texels() noexcept { return texels_; }
  // The texture of one of the forms that a pass has the buffer in. On the context's thread.
  PixelTexture& pixels(std::size_t form) {
    if (form >= pixels_.size()) pixels_.resize(form + 1);
    return pixels_[form];
  }
  const ContextGroup& group() const noexcept { return *group_; }
  Shadow* shadow() const noexcept { return shadow_.get(); }
  // What the host wrote last, for values that the host reads again: uniforms. Empty: read() has to be asked.
  std::span<const std::byte> written() const noexcept;

 private:
  GlBuffer(std::shared_ptr<ContextGroup> group, std::shared_ptr<SharedStaging> staging, Transfer transfer,
           std::uint64_t bytes);
  Status make(BufferUsage usage);  // on the context's thread
  Status import(int fd);           // likewise, instead of make()
  Status make_shadow(BufferUsage usage, GLsizeiptr store);
  Status in_range(std::string_view doing, std::uint64_t offset, std::size_t bytes) const;
  Result<Staging*> staging();  // on the context's thread

  std::shared_ptr<ContextGroup> group_;
  std::shared_ptr<SharedStaging> staging_;
  Transfer transfer_;
  std::uint64_t bytes_;
  bool is_part_ = false;  // another buffer owns the name
  GLuint name_ = 0;
  GLuint imported_ = 0;  // the memory object behind it; 0: its own memory
  std::byte* memory_ = nullptr;
  std::unique_ptr<Shadow> shadow_;
  std::vector<std::byte> written_;  // of a small upload that is not mapped
  TexelView texels_;                // touched on the context's thread, as is the next
  std::vector<PixelTexture> pixels_;
};

// import_memory: a buffer whose memory lies behind a descriptor that another device or API exported (a dma-buf).
//
// Thread-safety: on a context's thread. Ownership: the caller deletes both names, the buffer's first; the descriptor
// stays the caller's, GL gets a duplicate.

struct ImportedMemory {
  GLuint memory = 0;
  GLuint buffer = 0;
};

// REQUIRES: the context has GL_EXT_memory_object_fd. invalid_argument: the memory has fewer bytes, with both numbers.
// unavailable: the driver does not take it.
Result<ImportedMemory> import_memory(ContextGroup& group, int fd, std::uint64_t bytes);

}  // namespace kiln::opengl
