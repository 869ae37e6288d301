// DeviceMemory: the GPU's address space as the engines of one job see it: page table, buffer list, access rights, and a
// model of the L2 cache. What the host wrote after L2 has read a page is not seen until L2 is invalidated; what the
// device wrote is not seen by the host until L2 is written back.
//
// Thread-safety: page() from any thread of the job. The others while no wave runs.
// Ownership: pages stay valid until the next invalidate_l2() and the end of the job; they belong to the model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "simulator/base/fault.hpp"

namespace kiln::simulator {

enum class Access : std::uint8_t { invalid = 0, read, write, execute };

struct Page {  // one page of device memory, through L2
  static constexpr std::uint64_t bytes = 4096;
  std::uint64_t address = 0;  // of its first byte in the GPU's space
  std::byte* data = nullptr;  // Page::bytes of them; written only where asked for with Access::write
  // A mark for each byte, not 0 where the device wrote it since the last write-back. Null: written past L2.
  std::byte* marks = nullptr;

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

  // Later reads fetch what the host's memory holds then. What was written and not written back is lost, as on hardware.
  virtual void invalidate_l2() = 0;
  virtual void write_back_l2() = 0;

  // Past L2, as the command processor fetches packets, polls and signals: load() sees what the host wrote and what the
  // device wrote, store() is seen by both at once. Aligned words of 4 and 8 bytes are moved whole. Without an L2 (the
  // default here) they are reads and writes of pages.
  virtual std::optional<Fault> load(std::uint64_t address, std::span<std::byte> out);
  virtual std::optional<Fault> store(std::uint64_t address, std::span<const std::byte> bytes);
};

}  // namespace kiln::simulator
