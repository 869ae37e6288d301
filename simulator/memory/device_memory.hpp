// Memory as a job sees it: buffers of the host, the interface of the engines to them, and byte access by the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "simulator/fault.hpp"

namespace kiln::simulator {

// DeviceMemory: the GPU's address space as the engines of one job see it: page table, buffer list, access rights, and a
// model of the L2 cache. What the host wrote after L2 has read a page is not seen until L2 is invalidated; what the
// device wrote is not seen by the host until L2 is written back.
//
// Thread-safety: page() from any thread of the job. The others while no wave runs.
// Ownership: pages stay valid until the next invalidate_l2() and the end of the job; they belong to the model.

enum class Access : std::uint8_t { invalid = 0, read, write, execute };

struct Page {  // one page of device memory, through L2
  static constexpr std::uint64_t bytes = 4096;
  std::uint64_t address = 0;  // of its first byte in the GPU's space
  std::byte* data = nullptr;  // Page::bytes of them; written only where asked for with Access::write
  // A mark for each byte, not 0 where the device wrote it since the last write-back. Null: written past L2.
  std::byte* marks = nullptr;
  bool unbacked = false;  // no memory: what is written is lost; `data` is for one write, and none may be kept

  // Whoever wrote `count` bytes at `address` in this page says so; from any thread of the job.
  void mark(std::uint64_t at, std::size_t count) const noexcept {
    if (marks != nullptr) mark_bytes(marks + (at - address), count);
  }
  static void mark_bytes(std::byte* marks, std::size_t count) noexcept;
};

inline void Page::mark_bytes(std::byte* marks, std::size_t count) noexcept {
  constexpr std::uint32_t four = 0x0101'0101;
  while (count >= sizeof four && reinterpret_cast<std::uintptr_t>(marks) % sizeof four == 0) {
    __atomic_store_n(static_cast<std::uint32_t*>(static_cast<void*>(marks)), four, __ATOMIC_RELAXED);
    marks += sizeof four;
    count -= sizeof four;
  }
  auto* byte = static_cast<unsigned char*>(static_cast<void*>(marks));
  for (; count != 0; ++byte, --count) __atomic_store_n(byte, static_cast<unsigned char>(1), __ATOMIC_RELAXED);
}

class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  virtual ~DeviceMemory();

  // The page that holds `address`. Callers keep what they are given and look it up again only for another page. Bytes
  // that were written and marked are written back, also where L2 already held the value.
  virtual std::optional<Fault> page(std::uint64_t address, Access access, Page& out) = 0;

  // Whether memory lies behind `address`: not in the part of a sparse mapping that has none.
  virtual bool resident(std::uint64_t) const noexcept { return true; }

  // Later reads fetch what the host's memory holds then. What was written and not written back is lost, as on hardware.
  virtual void invalidate_l2() = 0;
  virtual void write_back_l2() = 0;

  // Past L2, as the command processor fetches packets, polls and signals: load() sees what the host wrote and what the
  // device wrote, store() is seen by both at once. Aligned words of 4 and 8 bytes are moved whole. Without an L2 (the
  // default here) they are reads and writes of pages.
  virtual std::optional<Fault> load(std::uint64_t address, std::span<std::byte> out);
  virtual std::optional<Fault> store(std::uint64_t address, std::span<const std::byte> bytes);
};

// Words of memory that the host's own threads read and write while a device works on it: moved whole where aligned.
//
// Thread-safety: any thread. Ownership: borrows.

// Both sides of one size. Aligned (on the host's side) runs of 4 and 8 bytes are one access each.
void read_host(const std::byte* host, std::span<std::byte> out) noexcept;
void write_host(std::byte* host, std::span<const std::byte> bytes) noexcept;

// Writes to `host` the bytes whose mark is not 0, and no others, also where the host writes beside them; answers how
// many. Marks are 0 or 1. Sizes are multiples of 8, `host` is aligned to 8.
std::size_t write_marked(std::byte* host, std::span<const std::byte> bytes, std::span<const std::byte> marks) noexcept;

// BufferMemory: the host's memory behind one buffer object, as page tables and L2 know it.
//
// Thread-safety: never changes. Ownership: whoever made the buffer keeps `host` mapped for as long as a BufferRef
// lives: page tables, snapshots of them and so running jobs hold one. A kernel node makes one inside its own buffer
// object (std::shared_ptr's aliasing constructor); devices that share the buffer share the object.

struct BufferMemory {
  std::uint64_t id = 0;       // of this buffer and never of another one, over all devices of the process
  std::byte* host = nullptr;  // its first byte, page-aligned
  std::uint64_t bytes = 0;    // whole pages
  bool always_valid = false;  // every job may use it, listed or not
};

using BufferRef = std::shared_ptr<const BufferMemory>;

}  // namespace kiln::simulator
