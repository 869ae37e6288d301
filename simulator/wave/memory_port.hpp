// MemoryPort: one thread's way to device memory: a small cache of page translations, reads and writes apart.
//
// Thread-safety: one thread; several ports may share a DeviceMemory. Ownership: borrows the memory from attach() until
// detach(). What it caches is forgotten at attach(): pages are valid within one dispatch at least.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "simulator/fault.hpp"
#include "simulator/memory/device_memory.hpp"

namespace kiln::simulator {

class MemoryPort {
 public:
  void attach(DeviceMemory& memory) noexcept;
  void detach() noexcept { memory_ = nullptr; }

  // The host's address of the byte at `address`, good to the end of its page; null: fault() says why.
  [[gnu::always_inline]] std::byte* read(std::uint64_t address) {
    const Entry& entry = reads_[slot(address)];
    return entry.tag == tag(address) ? entry.data + (address & (Page::bytes - 1)) : miss(address, Access::read);
  }
  [[gnu::always_inline]] std::byte* write(std::uint64_t address) {
    const Entry& entry = writes_[slot(address)];
    return entry.tag == tag(address) ? entry.data + (address & (Page::bytes - 1)) : miss(address, Access::write);
  }

  // After `bytes` bytes were written at `address`, which lie in the page that write() gave for it.
  [[gnu::always_inline]] void mark(std::uint64_t address, std::size_t bytes) noexcept {
    const Entry& entry = writes_[slot(address)];
    if (entry.marks != nullptr) Page::mark_bytes(entry.marks + (address & (Page::bytes - 1)), bytes);
  }

  // Whether a pointer of write() is to a page without memory: what is written there is lost, and may be read until
  // then.
  bool is_unbacked(const std::byte* at) const noexcept { return at >= unbacked_ && at < unbacked_ + Page::bytes; }

  // Any length, over page ends. False: fault() says why; what lies before the fault may have been moved.
  bool load(std::uint64_t address, void* out, std::size_t bytes);
  bool store(std::uint64_t address, const void* in, std::size_t bytes);

  DeviceMemory& memory() const noexcept { return *memory_; }
  // REQUIRES: something has just failed.
  Fault take_fault() { return *std::move(fault_); }

 private:
  static constexpr std::size_t entries = 128;
  struct Entry {
    std::uint64_t tag = 0;
    std::byte* data = nullptr;
    std::byte* marks = nullptr;  // see Page
  };

  static std::size_t slot(std::uint64_t address) noexcept { return (address / Page::bytes) % entries; }
  // Page number (52 bits) under the number of the attachment, so that an attach() empties the cache.
  std::uint64_t tag(std::uint64_t address) const noexcept { return (address / Page::bytes) | epoch_ << 52U; }
  std::byte* miss(std::uint64_t address, Access access);

  DeviceMemory* memory_ = nullptr;
  std::uint64_t epoch_ = 0;
  std::optional<Fault> fault_;
  Entry reads_[entries];
  Entry writes_[entries];
  alignas(64) std::byte unbacked_[Page::bytes] = {};
};

}  // namespace kiln::simulator
