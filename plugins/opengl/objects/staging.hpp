// Staging: two persistently mapped buffers through which the host's bytes reach memory of the device's own, and back.
//
// Thread-safety: on the dispatching context's thread only. Ownership: shared by the device and its buffers; destroyed
// there. The two have flags of their own: one is only written by the host, the other only read.
#pragma once

#include "gl/context_group.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <span>

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

}  // namespace kiln::opengl
