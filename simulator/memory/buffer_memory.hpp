// BufferMemory: the host's memory behind one buffer object, as page tables and L2 know it.
//
// Thread-safety: never changes. Ownership: whoever made the buffer keeps `host` mapped for as long as a BufferRef
// lives: page tables, snapshots of them and so running jobs hold one. A kernel node makes one inside its own buffer
// object (std::shared_ptr's aliasing constructor); devices that share the buffer share the object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace kiln::simulator {

struct BufferMemory {
  std::uint64_t id = 0;       // of this buffer and never of another one, over all devices of the process
  std::byte* host = nullptr;  // its first byte, page-aligned
  std::uint64_t bytes = 0;    // whole pages
  bool always_valid = false;  // every job may use it, listed or not
};

using BufferRef = std::shared_ptr<const BufferMemory>;

}  // namespace kiln::simulator
