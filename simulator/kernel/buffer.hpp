// Buffer: one buffer object: memory of its own (a file without a name, so that it can be mapped, exported and imported)
// or memory of the program (a user pointer).
//
// Thread-safety: `memory`, and what is set at creation, never change. The rest REQUIRES the device's mutex.
// Ownership: unmaps and closes in the destructor; handles, lists, mappings and jobs share it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "simulator/kernel/fence.hpp"
#include "simulator/kernel/file_descriptor.hpp"
#include "simulator/memory/device_memory.hpp"

namespace kiln::simulator::kernel {

enum class Heap : std::uint8_t { invalid = 0, vram, gtt, program };

// Bytes that live buffers hold. Buffers may die on any thread.
struct HeapUse {
  std::atomic<std::uint64_t> vram{0};
  std::atomic<std::uint64_t> gtt{0};
};

struct BufferTraits {
  std::uint64_t id = 0;
  std::uint64_t bytes = 0;  // whole pages
  std::uint64_t alignment = 0;
  std::uint64_t domains = 0;     // AMDGPU_GEM_DOMAIN_*, as asked for
  std::uint64_t flags = 0;       // AMDGPU_GEM_CREATE_*
  std::uint64_t map_offset = 0;  // where a mapping of the device file finds it; 0: nowhere
  Heap heap = Heap::invalid;
};

struct BufferMetadata {
  std::uint64_t flags = 0;
  std::uint64_t tiling = 0;
  std::uint32_t bytes = 0;
  std::array<std::uint32_t, 64> data{};
};

class Buffer {
 public:
  // Null where the host has no memory, address space or descriptor left: errno says why.
  static std::shared_ptr<Buffer> create(const BufferTraits& traits, std::shared_ptr<HeapUse> use);
  // Memory that another process exported: `fd` is a descriptor of its file. `traits.bytes` is the file's size.
  static std::shared_ptr<Buffer> adopt(const BufferTraits& traits, UniqueFd fd, std::shared_ptr<HeapUse> use);
  // REQUIRES that the program keeps the memory mapped while the buffer lives, as for a user pointer on a real device.
  static std::shared_ptr<Buffer> of_program(const BufferTraits& traits, std::byte* address);
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  const BufferTraits traits;
  BufferMetadata metadata;
  std::uint64_t domains_now = 0;  // of traits, or as placed again later

  // The memory, kept alive with the buffer.
  static BufferRef memory(const std::shared_ptr<Buffer>& buffer);
  std::byte* host() const noexcept { return memory_.host; }
  int fd() const noexcept { return fd_.get(); }  // -1 for memory of the program

  // What was written to video memory is gone: every page that holds something is filled with 0xa5.
  void lose_contents();

  // Jobs that may still use the buffer, by the file that submitted them.
  void add_use(const void* owner, FencePtr finished);
  void wait_for_others(const void* owner, Fences& fences) const;  // adds the unfinished jobs of other files
  void wait_for_all(Fences& fences) const { wait_for_others(nullptr, fences); }

 private:
  struct Use {
    const void* owner = nullptr;
    FencePtr finished;
  };

  Buffer(const BufferTraits& traits_in, UniqueFd fd, std::byte* host, std::shared_ptr<HeapUse> use);
  static std::shared_ptr<Buffer> map(const BufferTraits& traits, UniqueFd fd, std::shared_ptr<HeapUse> use);

  UniqueFd fd_;
  BufferMemory memory_;
  std::shared_ptr<HeapUse> use_;
  std::vector<Use> uses_;
};

using BufferPtr = std::shared_ptr<Buffer>;

}  // namespace kiln::simulator::kernel
