// L2Buffer: L2's copies of one buffer's pages. A copy is `current` from its first use after an invalidation. Beside it
// lies a mark for each byte: whether the device wrote it since the last write-back.
//
// Thread-safety: page(), load() and store() from many threads; the others while no wave runs.
// Ownership: its L2Cache owns it; it owns the copies, and no reference on the buffer.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "simulator/memory/buffer_memory.hpp"
#include "simulator/memory/device_memory.hpp"
#include "simulator/memory/l2_cache.hpp"

namespace kiln::simulator {

enum class L2Use : std::uint8_t { invalid = 0, read, write };

class L2Buffer {
 public:
  L2Buffer(L2Cache& cache, const BufferRef& buffer);
  L2Buffer(const L2Buffer&) = delete;
  L2Buffer& operator=(const L2Buffer&) = delete;
  ~L2Buffer();

  // The marks follow the page's bytes: see marks_of().
  std::byte* page(std::uint64_t index, L2Use use);
  static std::byte* marks_of(std::byte* page) noexcept { return page + Page::bytes; }
  // Inside one page; see DeviceMemory.
  void load(std::uint64_t index, std::size_t offset, std::span<std::byte> out);
  void store(std::uint64_t index, std::size_t offset, std::span<const std::byte> bytes);

  bool alive() const { return !buffer_.expired(); }
  void forget_writes();  // the cache was invalidated
  void write_back(L2Counters& counters);
  // Whether pages remain with bytes to write back.
  bool settle();

 private:
  struct Copy {
    std::atomic<std::uint64_t> epoch{0};  // of the cache when it was read; 0: never
    std::atomic<bool> written{false};     // given out for writing: its marks count
    std::unique_ptr<std::byte[]> data;    // Page::bytes, and as many marks
  };
  static constexpr std::size_t copies_a_block = 256;
  struct Block {
    std::array<Copy, copies_a_block> copies;
  };

  Copy* find(std::uint64_t index) const noexcept;
  Copy& made(std::uint64_t index);  // with the lock held
  bool current(const Copy& copy) const noexcept;
  void take_host_changes(Copy& copy, std::uint64_t index);
  std::byte* host_page(std::uint64_t index) const noexcept;

  L2Cache& cache_;
  std::weak_ptr<const BufferMemory> buffer_;
  std::byte* host_;
  std::mutex mutex_;
  std::vector<std::atomic<Block*>> blocks_;
  struct Written {
    std::uint64_t index = 0;  // of the page
    Copy* copy = nullptr;
  };
  std::vector<Written> written_;
};

}  // namespace kiln::simulator
